// What c10d gives to its caller for an operation that is under way: wait for it, ask for it, or get
// a future of its tensors.
#pragma once

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <vector>

namespace renkei::python {

class BackendWork : public c10d::Work {
 public:
  BackendWork(int rank, c10d::OpType type, std::vector<at::Tensor> outputs, uint64_t sequence);

  // Once, by whoever has done it, when it holds no lock and is in nobody's way: callbacks of the
  // future are called here, and may wait for other operations.
  void complete(std::exception_ptr failure = nullptr);
  void came_from(int rank) { source_ = rank; }

  std::vector<at::Tensor> result() override { return outputs_; }
  int sourceRank() const override { return source_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override { return sequence_; }

 private:
  std::vector<at::Tensor> outputs_;
  uint64_t sequence_;
  std::atomic<int> source_ = -1;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace renkei::python
