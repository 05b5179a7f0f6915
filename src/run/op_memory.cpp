#include "run/op_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "model/gradient_sink.h"
#include "model/random_ops.h"
#include "run/memory.h"

namespace renkei::run {
namespace {

using Tensors = std::vector<torch::Tensor>;

const void* storage_of(const torch::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

// Copies that nobody else holds, and no leaves: autograd holds on to a leaf whether it needs it or
// not.
Tensors lend(const Tensors& inputs) {
  Tensors lent;
  for (const torch::Tensor& input : inputs)
    lent.push_back(input.detach().requires_grad_(input.requires_grad()).clone());
  return lent;
}

}  // namespace

OpMemory::OpMemory(const model::Capture& capture)
    : capture_(capture),
      root_(capture.graph.values.size()),
      kept_(capture.graph.values.size()),
      found_(capture.graph.ops.size()) {
  std::iota(root_.begin(), root_.end(), 0);
}

void OpMemory::measure(graph::OpIndex op, const model::Program& program, const Tensors& inputs,
                       const Tensors& state) {
  const model::KeyedRandom random({});
  Found& found = found_[static_cast<size_t>(op)];
  {
    const int64_t before = memory_use().live;
    Tensors lent = lend(inputs);
    const int64_t with_inputs = memory_use().live;
    reset_peak_memory();
    Tensors outputs = program.run(lent, state);
    found.forward_peak = memory_use().peak - with_inputs;

    // The memory of each value, by what it belongs to.
    std::map<const void*, graph::ValueIndex> owner;
    for (const torch::Tensor& tensor : state) owner.emplace(storage_of(tensor), -1);
    for (size_t i = 0; i < lent.size(); ++i)
      owner.emplace(storage_of(lent[i]), root_[static_cast<size_t>(program.inputs()[i])]);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const graph::ValueIndex value = program.outputs()[i];
      root_[static_cast<size_t>(value)] =
          owner.emplace(storage_of(outputs[i]), value).first->second;
    }
    struct Watched {
      graph::ValueIndex root;
      int64_t bytes;
      c10::weak_intrusive_ptr<c10::StorageImpl> memory;
    };
    std::vector<Watched> watched;
    std::set<const void*> seen;
    std::vector<std::shared_ptr<torch::autograd::Node>> graph;
    for (const Tensors* list : {&lent, &outputs})
      for (const torch::Tensor& tensor : *list) {
        if (list == &outputs && tensor.grad_fn()) graph.push_back(tensor.grad_fn());
        const graph::ValueIndex root = owner.at(storage_of(tensor));
        if (root >= 0 && seen.insert(storage_of(tensor)).second)
          watched.push_back({root, static_cast<int64_t>(tensor.storage().nbytes()),
                             tensor.storage().getWeakStorageImpl()});
      }
    lent.clear();
    outputs.clear();
    found.inside = memory_use().live - before;
    for (const Watched& value : watched) {
      if (value.memory.expired()) continue;
      kept_[static_cast<size_t>(value.root)] = true;
      found.inside -= value.bytes;
    }
    found.inside = std::max<int64_t>(0, found.inside);
  }

  const Tensors outputs = program.run(inputs, state);
  const int64_t before = memory_use().live;
  reset_peak_memory();
  Tensors roots, seeds;
  for (const torch::Tensor& output : outputs)
    if (output.requires_grad()) {
      roots.push_back(output);
      seeds.push_back(torch::ones_like(output));
    }
  if (roots.empty()) return;
  model::GradientSink::of_this_thread().begin_step();
  torch::autograd::backward(roots, seeds);
  found.backward_extra = memory_use().peak - before;
}

void OpMemory::write_to(std::vector<graph::Op>& ops) const {
  const auto bytes = [&](graph::ValueIndex value) {
    return capture_.graph.values[static_cast<size_t>(value)].bytes;
  };
  std::vector<bool> made(root_.size());  // by an op: the graph's inputs are not counted
  for (const graph::Op& op : ops)
    for (const graph::ValueIndex value : op.outputs) made[static_cast<size_t>(value)] = true;
  for (size_t i = 0; i < ops.size(); ++i) {
    graph::Op& op = ops[i];
    const Found& found = found_[i];
    op.saved_bytes = found.inside;
    for (const graph::ValueIndex value : op.outputs)
      if (root_[static_cast<size_t>(value)] == value && kept_[static_cast<size_t>(value)])
        op.saved_bytes += bytes(value);
    std::set<graph::ValueIndex> passing;
    for (const graph::ValueIndex value : op.inputs) {
      const graph::ValueIndex root = root_[static_cast<size_t>(value)];
      if (root >= 0 && made[static_cast<size_t>(root)] && !kept_[static_cast<size_t>(root)])
        passing.insert(root);
    }
    int64_t forward = std::max<int64_t>(0, found.forward_peak - op.saved_bytes);
    for (const graph::ValueIndex root : passing) forward += bytes(root);
    op.workspace_bytes = std::max(forward, found.backward_extra);
  }
}

}  // namespace renkei::run
