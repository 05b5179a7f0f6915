#include "run/op_memory.h"

#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "run/memory.h"

namespace renkei::run {
namespace {

using Tensors = std::vector<torch::Tensor>;

const void* storage_of(const torch::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

// Copies that nobody else holds, and no leaves: autograd holds on to a leaf whether it needs it or
// not.
Tensors lend(const Tensors& leaves) {
  Tensors lent;
  for (const torch::Tensor& leaf : leaves) lent.push_back(leaf.clone());
  return lent;
}

}  // namespace

// Sees which of some values are still in memory when everybody here has let go of them.
class OpMemory::Watch {
 public:
  explicit Watch(const std::vector<graph::ValueIndex>& root) : root_(root) {}

  void add(const std::vector<graph::ValueIndex>& values, const Tensors& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const graph::ValueIndex root = root_[static_cast<size_t>(values[i])];
      if (root < 0 || !seen_.insert(storage_of(tensors[i])).second) continue;
      const c10::Storage& storage = tensors[i].storage();
      list_.push_back({root, static_cast<int64_t>(storage.nbytes()), storage.getWeakStorageImpl()});
    }
  }

  // `live`: bytes since before the values were made.
  void write_to(Kept& kept, graph::OpIndex op, int64_t live) const {
    for (const Value& value : list_) {
      if (value.memory.expired()) continue;
      kept.roots[static_cast<size_t>(value.root)] = true;
      live -= value.bytes;
    }
    kept.inside[static_cast<size_t>(op)] = std::max<int64_t>(0, live);
  }

 private:
  struct Value {
    graph::ValueIndex root;
    int64_t bytes;
    c10::weak_intrusive_ptr<c10::StorageImpl> memory;
  };
  const std::vector<graph::ValueIndex>& root_;
  std::vector<Value> list_;
  std::set<const void*> seen_;
};

OpMemory::OpMemory(const CutProgram& program, int64_t samples, ExecutionContext& context)
    : program_(program),
      samples_(samples),
      context_(context),
      root_(program.graph().values.size()),
      peaks_(program.graph().ops.size()) {
  std::iota(root_.begin(), root_.end(), 0);
  for (Kept* kept : {&saved_, &deferred_}) {
    kept->roots.resize(root_.size());
    kept->inside.resize(peaks_.size());
  }
}

void OpMemory::find_views(graph::OpIndex op, const Executor& executor, const Tensors& inputs,
                          const Tensors& state, const Tensors& outputs) {
  std::map<const void*, graph::ValueIndex> owner;
  for (const torch::Tensor& tensor : state) owner.emplace(storage_of(tensor), -1);
  const auto taken = program_.inputs_of(executor);
  const auto& made = program_.graph().ops[static_cast<size_t>(op)].outputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    owner.emplace(storage_of(inputs[i]), root_[static_cast<size_t>(taken[i])]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const graph::ValueIndex value = made[i];
    root_[static_cast<size_t>(value)] = owner.emplace(storage_of(outputs[i]), value).first->second;
  }
}

void OpMemory::measure(graph::OpIndex op, const Executor& executor, const Tensors& inputs,
                       const Tensors& state) {
  Peaks& peaks = peaks_[static_cast<size_t>(op)];
  const int64_t before = memory_use().live;
  Tensors lent = lend(inputs);
  const int64_t with_inputs = memory_use().live;
  reset_peak_memory();
  Tensors outputs = executor.run(lent, state, samples_, context_);
  peaks.forward = memory_use().peak - with_inputs;
  find_views(op, executor, lent, state, outputs);
  Watch watch(root_);
  watch.add(program_.inputs_of(executor), lent);
  watch.add(program_.graph().ops[static_cast<size_t>(op)].outputs, outputs);

  // Of the outputs only autograd's history stays.
  std::vector<torch::autograd::Edge> edges;
  std::vector<at::TensorOptions> options;
  std::vector<std::vector<int64_t>> shapes;
  for (const torch::Tensor& output : outputs)
    if (output.requires_grad()) {
      edges.push_back(torch::autograd::impl::gradient_edge(output));
      shapes.push_back(output.sizes().vec());
      options.push_back(output.options());
    }
  lent.clear();
  outputs.clear();
  watch.write_to(saved_, op, memory_use().live - before);
  if (edges.empty()) return;

  const int64_t held = memory_use().live;
  reset_peak_memory();
  Tensors seeds;
  for (size_t i = 0; i < edges.size(); ++i) seeds.push_back(torch::ones(shapes[i], options[i]));
  context_.sink.begin_step();
  DeferredGradients put_off;
  context_.deferred = &put_off;
  torch::autograd::Engine::get_default_engine().execute(edges, seeds, false, false, true);
  context_.deferred = nullptr;
  peaks.backward = memory_use().peak - held;
  seeds.clear();
  edges.clear();
  for (torch::Tensor leaf : inputs) leaf.mutable_grad().reset();
  watch.write_to(deferred_, op, memory_use().live - before);
  put_off.run();
  peaks.backward = std::max(peaks.backward, memory_use().peak - held);
}

int64_t OpMemory::Kept::of(const OpMemory& memory, size_t op) const {
  int64_t bytes = inside[op];
  for (const graph::ValueIndex value : memory.program_.graph().ops[op].outputs)
    if (memory.root_[static_cast<size_t>(value)] == value && roots[static_cast<size_t>(value)])
      bytes += memory.program_.graph().values[static_cast<size_t>(value)].bytes;
  return bytes;
}

void OpMemory::write_to(std::vector<graph::Op>& ops) const {
  std::vector<bool> made(root_.size());  // by an op: the graph's inputs are not counted
  for (const graph::Op& op : ops)
    for (const graph::ValueIndex value : op.outputs) made[static_cast<size_t>(value)] = true;
  for (size_t i = 0; i < ops.size(); ++i) {
    graph::Op& op = ops[i];
    op.saved_bytes = saved_.of(*this, i);
    op.deferred_bytes = deferred_.of(*this, i);
    std::set<graph::ValueIndex> passing;
    for (const graph::ValueIndex value : op.inputs) {
      const graph::ValueIndex root = root_[static_cast<size_t>(value)];
      if (root >= 0 && made[static_cast<size_t>(root)] && !saved_.roots[static_cast<size_t>(root)])
        passing.insert(root);
    }
    int64_t forward = std::max<int64_t>(0, peaks_[i].forward - op.saved_bytes);
    for (const graph::ValueIndex root : passing)
      forward += program_.graph().values[static_cast<size_t>(root)].bytes;
    op.workspace_bytes = std::max(forward, peaks_[i].backward);
  }
}

}  // namespace renkei::run
