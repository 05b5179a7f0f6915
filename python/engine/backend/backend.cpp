#include "backend/backend.h"

#include <Python.h>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "backend/parts.h"
#include "base/error.h"
#include "tensors.h"

namespace renkei::python {
namespace {

using c10d::OpType;
using Tensors = std::vector<at::Tensor>;

// Python's lock must not be held while threads end that may want it.
class WithoutPython {
 public:
  WithoutPython()
      : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutPython() {
    if (state_) PyEval_RestoreThread(state_);
  }
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;

 private:
  PyThreadState* state_;
};

const at::Tensor& only(const Tensors& tensors, const char* name) {
  if (tensors.size() != 1)
    throw Error(ErrorCode::usage, fmt::format("{} takes one tensor, not {}", name, tensors.size()));
  return tensors.front();
}

const Tensors& only_list(const std::vector<Tensors>& lists, const char* name) {
  if (lists.size() != 1)
    throw Error(ErrorCode::usage,
                fmt::format("{} takes one list of tensors, not {}", name, lists.size()));
  return lists.front();
}

void check_on_cpu(const Tensors& tensors, const char* name) {
  for (const at::Tensor& tensor : tensors)
    if (!tensor.device().is_cpu())
      throw Error(ErrorCode::usage,
                  fmt::format("{} of a tensor on {}", name, tensor.device().str()),
                  "the backend renkei is for tensors on the CPU: "
                  "init_process_group(\"cpu:renkei,cuda:nccl\") has one for each");
}

void check_dense(const Tensors& tensors, const char* name) {
  check_on_cpu(tensors, name);
  for (const at::Tensor& tensor : tensors)
    if (tensor.layout() != at::kStrided)
      throw Error(ErrorCode::usage, fmt::format("{} of a sparse tensor", name),
                  "only a sum of sparse tensors by all_reduce is known");
}

}  // namespace

struct RenkeiBackend::Start {
  const char* name;
  OpType type;
  Tensors outputs;
  std::chrono::milliseconds timeout;
  bool wait = false;  // the caller does so anyway
};

RenkeiBackend::RenkeiBackend(GroupParts parts, std::chrono::milliseconds timeout)
    : Backend(parts.transport->rank(), parts.transport->size()),
      options_(c10::make_intrusive<Options>("renkei", timeout)),
      parts_(std::move(parts)),
      messages_(std::make_unique<PointToPoint>(*parts_.transport)),
      worker_(std::make_unique<Worker>()) {}

RenkeiBackend::~RenkeiBackend() {
  const WithoutPython unlocked;
  worker_.reset();
  messages_.reset();
}

void RenkeiBackend::shutdown() {
  const WithoutPython unlocked;
  worker_ = std::make_unique<Worker>();  // after all that was submitted
  // Whoever still has the group may keep it for longer than the job lasts.
  if (failure_.empty()) failure_ = "it was destroyed";
  messages_.reset();
  parts_.collectives.reset();
  parts_.transport.reset();
  parts_.ticket.reset();
}

comm::GroupCollectives& RenkeiBackend::collectives() {
  if (!failure_.empty())
    throw Error(ErrorCode::communication, fmt::format("this process group has ended: {}", failure_),
                "destroy the process group and make another one");
  return *parts_.collectives;
}

void RenkeiBackend::fail(const std::string& operation, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    failure_ = fmt::format("{} ({})", error.message, operation);
  } catch (const std::exception& error) {
    failure_ = fmt::format("{} ({})", error.what(), operation);
  }
  parts_.collectives.reset();  // tells those who wait
}

RenkeiBackend::Pending RenkeiBackend::start(const Start& start,
                                            std::function<void(const comm::Call&)> body) {
  auto work = c10::make_intrusive<BackendWork>(rank_, start.type, start.outputs, ++sequence_);
  const auto timeout = start.timeout == c10d::kUnsetTimeout ? options_->timeout : start.timeout;
  Worker::Turn turn = [this, work, body = std::move(body), name = std::string(start.name),
                       timeout]() -> Worker::Rest {
    const at::NoGradGuard no_grad;
    try {
      body({.operation = name, .timeout_seconds = static_cast<double>(timeout.count()) / 1000});
      return [work] { work->complete(); };
    } catch (...) {
      if (failure_.empty()) fail(name, std::current_exception());
      return [work, failure = std::current_exception()] { work->complete(failure); };
    }
  };
  if (start.wait)
    worker_->do_now(turn);
  else
    worker_->submit(std::move(turn));
  return work;
}

void RenkeiBackend::reduce_tensor(const at::Tensor& tensor, const c10d::ReduceOp& op,
                                  std::optional<int> root, const comm::Call& call) {
  const Reduced reduced(tensor, op);
  const comm::Buffer buffer = buffer_of(reduced.memory());
  collectives().reduce(buffer, buffer, reduced.reduction(), root, call);
  if (!root || *root == rank_) reduced.finish();
}

RenkeiBackend::Pending RenkeiBackend::allreduce(Tensors& tensors,
                                                const c10d::AllreduceOptions& options) {
  if (only(tensors, "all_reduce").layout() == at::kSparse)
    return allreduce_sparse(tensors, options);
  check_dense(tensors, "all_reduce");
  check_reduction(tensors.front(), options.reduceOp);
  return start({"all_reduce", OpType::ALLREDUCE, tensors, options.timeout, !options.asyncOp},
               [this, tensors, op = options.reduceOp](const comm::Call& call) {
                 reduce_tensor(tensors.front(), op, {}, call);
               });
}

RenkeiBackend::Pending RenkeiBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  check_dense(tensors, "all_reduce_coalesced");
  for (const at::Tensor& tensor : tensors) check_reduction(tensor, options.reduceOp);
  return start({"all_reduce_coalesced", OpType::ALLREDUCE_COALESCED, tensors, options.timeout,
                !options.asyncOp},
               [this, tensors, op = options.reduceOp](const comm::Call& call) {
                 for (const at::Tensor& tensor : tensors) reduce_tensor(tensor, op, {}, call);
               });
}

RenkeiBackend::Pending RenkeiBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  check_dense(tensors, "reduce");
  check_reduction(only(tensors, "reduce"), options.reduceOp);
  return start({"reduce", OpType::REDUCE, tensors, options.timeout, !options.asyncOp},
               [this, tensors, options](const comm::Call& call) {
                 reduce_tensor(tensors.front(), options.reduceOp,
                               static_cast<int>(options.rootRank), call);
               });
}

RenkeiBackend::Pending RenkeiBackend::allreduce_sparse(Tensors& tensors,
                                                       const c10d::AllreduceOptions& options) {
  const at::Tensor tensor = only(tensors, "all_reduce of sparse tensors");
  check_on_cpu(tensors, "all_reduce of sparse tensors");
  if (options.reduceOp.op_ != c10d::ReduceOp::SUM)
    throw Error(ErrorCode::usage, "all_reduce of sparse tensors can only sum them");
  return start({"all_reduce of sparse tensors", OpType::_ALLREDUCE_SPARSE, tensors, options.timeout,
                !options.asyncOp},
               [this, tensor](const comm::Call& call) { sum_sparse(tensor, call); });
}

// Every rank gets the indices and values of all, and adds them in rank order.
void RenkeiBackend::sum_sparse(at::Tensor tensor, const comm::Call& call) {
  const at::Tensor mine = tensor.coalesce();
  const at::Tensor indices = mine.indices().contiguous(), values = mine.values().contiguous();
  const at::Tensor count = at::full({1}, mine._nnz(), at::kLong);
  Tensors counts;
  for (int rank = 0; rank < size_; ++rank) counts.push_back(at::empty({1}, at::kLong));
  gather_tensors(counts, count, call);
  Tensors all_indices, all_values;
  for (const at::Tensor& elements : counts) {
    const auto nnz = elements.item<int64_t>();
    all_indices.push_back(at::empty({indices.size(0), nnz}, indices.options()));
    std::vector<int64_t> shape = values.sizes().vec();
    shape[0] = nnz;
    all_values.push_back(at::empty(shape, values.options()));
  }
  comm::Parts parts = empty_parts(size_);
  comm::Parts value_parts = empty_parts(size_);
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    parts.to[rank] = bytes_of(indices);
    parts.from[rank] = bytes_of(all_indices[rank]);
    value_parts.to[rank] = bytes_of(values);
    value_parts.from[rank] = bytes_of(all_values[rank]);
  }
  collectives().exchange(parts, 0, call);
  collectives().exchange(value_parts, 0, call);
  at::Tensor sum;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    const at::Tensor one =
        at::sparse_coo_tensor(all_indices[rank], all_values[rank], tensor.sizes());
    sum = rank == 0 ? one : sum + one;
  }
  tensor.copy_(sum.coalesce());
}

RenkeiBackend::Pending RenkeiBackend::broadcast(Tensors& tensors,
                                                const c10d::BroadcastOptions& options) {
  check_dense(tensors, "broadcast");
  const at::Tensor tensor = only(tensors, "broadcast");
  return start({"broadcast", OpType::BROADCAST, tensors, options.timeout, !options.asyncOp},
               [this, tensor, root = static_cast<int>(options.rootRank)](const comm::Call& call) {
                 const Contiguous memory(tensor, /*reads=*/rank_ == root);
                 comm::Parts parts = empty_parts(size_);
                 if (rank_ == root)
                   for (int rank = 0; rank < size_; ++rank) {
                     if (rank != root) parts.to[static_cast<size_t>(rank)] = memory.bytes();
                   }
                 else
                   parts.from[static_cast<size_t>(root)] = memory.bytes();
                 collectives().exchange(parts, tensor.nbytes(), call);
                 if (rank_ != root) memory.finish();
               });
}

void RenkeiBackend::gather_tensors(const Tensors& outputs, const at::Tensor& input,
                                   const comm::Call& call) {
  const Contiguous mine(input, /*reads=*/true);
  const ContiguousList all(outputs, /*reads=*/false);
  comm::Parts parts = empty_parts(size_);
  for (size_t rank = 0; rank < outputs.size(); ++rank) {
    parts.to[rank] = mine.bytes();
    parts.from[rank] = all.bytes(rank);
  }
  collectives().exchange(parts, input.nbytes(), call);
  all.finish();
}

RenkeiBackend::Pending RenkeiBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                const c10d::AllgatherOptions& options) {
  const Tensors all = only_list(outputs, "all_gather");
  check_dense(inputs, "all_gather");
  check_dense(all, "all_gather");
  const at::Tensor input = only(inputs, "all_gather");
  check_list(all, size_, input, "all_gather");
  return start({"all_gather", OpType::ALLGATHER, all, options.timeout, !options.asyncOp},
               [this, all, input](const comm::Call& call) { gather_tensors(all, input, call); });
}

RenkeiBackend::Pending RenkeiBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::AllgatherOptions& options) {
  Tensors outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

RenkeiBackend::Pending RenkeiBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  check_dense(outputs, "all_gather_into_tensor");
  check_dense(inputs, "all_gather_into_tensor");
  for (size_t i = 0; i < outputs.size(); ++i)
    check_whole(outputs[i], inputs[i], size_, "all_gather_into_tensor");
  return start({"all_gather_into_tensor", OpType::_ALLGATHER_BASE, outputs, options.timeout,
                !options.asyncOp},
               [this, outputs, inputs](const comm::Call& call) {
                 for (size_t i = 0; i < outputs.size(); ++i) {
                   const Contiguous whole(outputs[i], /*reads=*/false);
                   gather_tensors(whole.parts(size_), inputs[i], call);
                   whole.finish();
                 }
               });
}

RenkeiBackend::Pending RenkeiBackend::allgather_coalesced(std::vector<Tensors>& outputs,
                                                          Tensors& inputs,
                                                          const c10d::AllgatherOptions& options) {
  // outputs[rank][i] is input i of that rank.
  Tensors all;
  std::vector<Tensors> by_input(inputs.size());
  for (const Tensors& of_rank : outputs) {
    if (of_rank.size() != inputs.size())
      throw Error(ErrorCode::usage, "all_gather_coalesced needs as many outputs as inputs");
    for (size_t i = 0; i < of_rank.size(); ++i) by_input[i].push_back(of_rank[i]);
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  check_dense(all, "all_gather_coalesced");
  check_dense(inputs, "all_gather_coalesced");
  for (size_t i = 0; i < inputs.size(); ++i)
    check_list(by_input[i], size_, inputs[i], "all_gather_coalesced");
  return start(
      {"all_gather_coalesced", OpType::ALLGATHER_COALESCED, all, options.timeout, !options.asyncOp},
      [this, by_input, inputs](const comm::Call& call) {
        for (size_t i = 0; i < inputs.size(); ++i) gather_tensors(by_input[i], inputs[i], call);
      });
}

RenkeiBackend::Pending RenkeiBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                             const c10d::GatherOptions& options) {
  const int root = static_cast<int>(options.rootRank);
  const at::Tensor input = only(inputs, "gather");
  check_dense(inputs, "gather");
  const Tensors all = rank_ == root ? only_list(outputs, "gather") : Tensors();
  if (rank_ == root) check_list(all, size_, input, "gather");
  check_dense(all, "gather");
  return start({"gather", OpType::GATHER, all, options.timeout, !options.asyncOp},
               [this, all, input, root](const comm::Call& call) {
                 const Contiguous mine(input, /*reads=*/true);
                 const ContiguousList gathered(all, /*reads=*/false);
                 comm::Parts parts = empty_parts(size_);
                 parts.to[static_cast<size_t>(root)] = mine.bytes();
                 for (size_t rank = 0; rank < all.size(); ++rank)
                   parts.from[rank] = gathered.bytes(rank);
                 collectives().exchange(parts, input.nbytes(), call);
                 gathered.finish();
               });
}

RenkeiBackend::Pending RenkeiBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                              const c10d::ScatterOptions& options) {
  const int root = static_cast<int>(options.rootRank);
  const at::Tensor output = only(outputs, "scatter");
  check_dense(outputs, "scatter");
  const Tensors all = rank_ == root ? only_list(inputs, "scatter") : Tensors();
  if (rank_ == root) check_list(all, size_, output, "scatter");
  check_dense(all, "scatter");
  return start({"scatter", OpType::SCATTER, outputs, options.timeout, !options.asyncOp},
               [this, all, output, root](const comm::Call& call) {
                 const Contiguous mine(output, /*reads=*/false);
                 const ContiguousList scattered(all, /*reads=*/true);
                 comm::Parts parts = empty_parts(size_);
                 parts.from[static_cast<size_t>(root)] = mine.bytes();
                 for (size_t rank = 0; rank < all.size(); ++rank)
                   parts.to[rank] = scattered.bytes(rank);
                 collectives().exchange(parts, output.nbytes(), call);
                 mine.finish();
               });
}

void RenkeiBackend::reduce_scatter_tensors(const at::Tensor& output, const Tensors& inputs,
                                           const c10d::ReduceOp& op, const comm::Call& call) {
  const ReducedList reduced(inputs, op);
  const Contiguous memory(as_real(output), /*reads=*/false);
  collectives().reduce_scatter(reduced.places(), buffer_of(memory.tensor()), reduced.reduction(),
                               call);
  memory.finish();
}

RenkeiBackend::Pending RenkeiBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                     const c10d::ReduceScatterOptions& options) {
  const at::Tensor output = only(outputs, "reduce_scatter");
  const Tensors all = only_list(inputs, "reduce_scatter");
  check_dense(outputs, "reduce_scatter");
  check_dense(all, "reduce_scatter");
  check_list(all, size_, output, "reduce_scatter");
  check_reduction(output, options.reduceOp);
  return start(
      {"reduce_scatter", OpType::REDUCE_SCATTER, outputs, options.timeout, !options.asyncOp},
      [this, output, all, op = options.reduceOp](const comm::Call& call) {
        reduce_scatter_tensors(output, all, op, call);
      });
}

RenkeiBackend::Pending RenkeiBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

RenkeiBackend::Pending RenkeiBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  check_dense(outputs, "reduce_scatter_tensor");
  check_dense(inputs, "reduce_scatter_tensor");
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_whole(inputs[i], outputs[i], size_, "reduce_scatter_tensor");
    check_reduction(outputs[i], options.reduceOp);
  }
  return start({"reduce_scatter_tensor", OpType::_REDUCE_SCATTER_BASE, outputs, options.timeout,
                !options.asyncOp},
               [this, outputs, inputs, op = options.reduceOp](const comm::Call& call) {
                 for (size_t i = 0; i < outputs.size(); ++i) {
                   const Contiguous whole(inputs[i], /*reads=*/true);
                   reduce_scatter_tensors(outputs[i], whole.parts(size_), op, call);
                 }
               });
}

RenkeiBackend::Pending RenkeiBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                    std::vector<int64_t>& output_sizes,
                                                    std::vector<int64_t>& input_sizes,
                                                    const c10d::AllToAllOptions& options) {
  check_dense({output, input}, "all_to_all_single");
  c10d::checkSplitSizes(input_sizes, input, size_);
  c10d::checkSplitSizes(output_sizes, output, size_);
  return start(
      {"all_to_all_single", OpType::ALLTOALL_BASE, {output}, options.timeout, !options.asyncOp},
      [this, output, input, output_sizes, input_sizes](const comm::Call& call) {
        const Contiguous from(input, /*reads=*/true), into(output, /*reads=*/false);
        comm::Parts parts;
        for (const auto& part : split_rows(from, input_sizes, size_)) parts.to.push_back(part);
        parts.from = split_rows(into, output_sizes, size_);
        collectives().exchange(parts, 0, call);
        into.finish();
      });
}

RenkeiBackend::Pending RenkeiBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                               const c10d::AllToAllOptions& options) {
  check_dense(outputs, "all_to_all");
  check_dense(inputs, "all_to_all");
  if (outputs.size() != static_cast<size_t>(size_) || inputs.size() != outputs.size())
    throw Error(ErrorCode::usage,
                fmt::format("all_to_all needs {} tensors to send and to receive, not {} and {}",
                            size_, inputs.size(), outputs.size()));
  return start({"all_to_all", OpType::ALLTOALL, outputs, options.timeout, !options.asyncOp},
               [this, outputs, inputs](const comm::Call& call) {
                 const ContiguousList from(inputs, /*reads=*/true), into(outputs, /*reads=*/false);
                 comm::Parts parts = empty_parts(size_);
                 for (size_t rank = 0; rank < outputs.size(); ++rank) {
                   parts.to[rank] = from.bytes(rank);
                   parts.from[rank] = into.bytes(rank);
                 }
                 collectives().exchange(parts, 0, call);
                 into.finish();
               });
}

RenkeiBackend::Pending RenkeiBackend::barrier(const c10d::BarrierOptions& options) {
  return start({"barrier", OpType::BARRIER, {}, options.timeout, !options.asyncOp},
               [this](const comm::Call& call) { collectives().barrier(call); });
}

void RenkeiBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool /*all*/) {
  c10d::BarrierOptions waiting = options;
  waiting.asyncOp = false;
  barrier(waiting)->wait();
}

RenkeiBackend::Pending RenkeiBackend::message(const char* name, OpType type, Tensors& tensors,
                                              int peer, int tag) {
  check_dense(tensors, name);
  const at::Tensor& tensor = only(tensors, name);
  if (!messages_) collectives();  // says why
  if (tag < 0 || tag >= parts_.tags)
    throw Error(ErrorCode::usage,
                fmt::format("tag {} of {}: here tags go from 0 to {}", tag, name, parts_.tags - 1));
  const bool receives = type != OpType::SEND;
  PendingMessage message;
  message.work = c10::make_intrusive<BackendWork>(rank_, type, tensors, ++sequence_);
  message.given = tensor;
  message.memory = tensor.is_contiguous() ? tensor
                   : receives             ? at::empty(tensor.sizes(), tensor.options())
                                          : tensor.detach().contiguous();
  message.operation = name;
  message.peer = peer;
  message.tag = parts_.first_tag + tag;
  message.timeout_seconds = static_cast<double>(options_->timeout.count()) / 1000;
  message.receives = receives;
  const Pending work = message.work;
  messages_->add(std::move(message));
  return work;
}

RenkeiBackend::Pending RenkeiBackend::send(Tensors& tensors, int to, int tag) {
  return message("send", OpType::SEND, tensors, to, tag);
}

RenkeiBackend::Pending RenkeiBackend::recv(Tensors& tensors, int from, int tag) {
  return message("recv", OpType::RECV, tensors, from, tag);
}

RenkeiBackend::Pending RenkeiBackend::recvAnysource(Tensors& tensors, int tag) {
  return message("recv from any rank", OpType::RECVANYSOURCE, tensors, -1, tag);
}

}  // namespace renkei::python
