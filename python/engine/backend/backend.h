// The backend "renkei" of torch.distributed: c10d's operations on a group's collectives. Operations
// of a group are done in the order of their calls by a worker; messages between two ranks are apart
// from them.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/point_to_point.h"
#include "backend/work.h"
#include "backend/worker.h"
#include "comm/group_collectives.h"

namespace renkei::python {

// What a group communicates through; the members are destroyed from the last to the first.
struct GroupParts {
  std::shared_ptr<void> ticket;  // whatever ends with the group
  std::unique_ptr<comm::Transport> transport;
  std::unique_ptr<comm::GroupCollectives> collectives;
  int first_tag = 0, tags = 0;  // for messages of the program
};

class RenkeiBackend : public c10d::Backend {
 public:
  RenkeiBackend(GroupParts parts, std::chrono::milliseconds timeout);
  ~RenkeiBackend() override;

  const std::string getBackendName() const override { return "renkei"; }  // NOLINT: c10d's type
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void shutdown() override;
  void abort() override {}

  using Tensors = std::vector<at::Tensor>;
  using Pending = c10::intrusive_ptr<c10d::Work>;
  Pending broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Pending allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Pending allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Pending allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  Pending reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  Pending allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  Pending _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  Pending allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  Pending allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  Pending gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  Pending scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override;
  Pending reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  Pending _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  Pending reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  Pending alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes,
                        const c10d::AllToAllOptions& options) override;
  Pending alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  Pending barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  Pending send(Tensors& tensors, int to, int tag) override;
  Pending recv(Tensors& tensors, int from, int tag) override;
  Pending recvAnysource(Tensors& tensors, int tag) override;

 private:
  struct Start;  // of an operation: how it is called, its outputs, how long it may take

  // Runs `body` in its turn. An Error ends the group: its ranks are no longer in step.
  Pending start(const Start& start, std::function<void(const comm::Call&)> body);
  Pending message(const char* name, c10d::OpType type, Tensors& tensors, int peer, int tag);
  void fail(const std::string& operation, const std::exception_ptr& failure);
  comm::GroupCollectives& collectives();

  void reduce_tensor(const at::Tensor& tensor, const c10d::ReduceOp& op, std::optional<int> root,
                     const comm::Call& call);
  void gather_tensors(const Tensors& outputs, const at::Tensor& input, const comm::Call& call);
  void reduce_scatter_tensors(const at::Tensor& output, const Tensors& inputs,
                              const c10d::ReduceOp& op, const comm::Call& call);
  void sum_sparse(at::Tensor tensor, const comm::Call& call);

  c10::intrusive_ptr<Options> options_;
  std::atomic<uint64_t> sequence_ = 0;
  GroupParts parts_;
  std::string failure_;  // of an earlier operation; only the worker's turns use it
  std::unique_ptr<PointToPoint> messages_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace renkei::python
