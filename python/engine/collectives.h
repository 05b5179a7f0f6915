// Collectives on Torch's tensors, as Python calls them. Everything that waits gives up Python's
// lock. Tensors are contiguous and on the CPU: Python sees to that.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"

namespace renkei::python {

class Collectives {
 public:
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  comm::Communicator& communicator() { return *communicator_; }
  comm::Transport& transport() { return communicator_->transport(); }
  int rank() { return transport().rank(); }
  int size() { return transport().size(); }
  double timeout_seconds() const { return timeout_seconds_; }
  comm::Call call(std::string_view operation) const {
    return {.operation = operation, .timeout_seconds = timeout_seconds_};
  }

  void barrier(const std::string& operation);
  // In place; `reduction` is sum, mean, max or min.
  void allreduce(const torch::Tensor& tensor, const std::string& reduction,
                 const std::string& operation);
  // The rows of all ranks' sum, max or min that belong to this one; the ranks divide them evenly.
  // `tensor` is used for partial results.
  torch::Tensor reduce_scatter(const torch::Tensor& tensor, const std::string& reduction,
                               const std::string& operation);
  void broadcast(const torch::Tensor& tensor, int root, const std::string& operation);
  std::vector<std::string> allgather(const std::string& mine, const std::string& operation,
                                     std::optional<double> timeout_seconds = {});
  // The rows of all ranks, whose numbers may differ.
  torch::Tensor allgather_rows(const torch::Tensor& mine, const std::string& operation);
  // splits[q] rows go to rank q. Returns what has come, and how many rows from each rank.
  std::pair<torch::Tensor, std::vector<int64_t>> alltoall(const torch::Tensor& rows,
                                                          const std::vector<int64_t>& splits,
                                                          const std::string& operation);
  // All ranks together, at an orderly end.
  virtual void close() { communicator_->close(); }

 protected:
  explicit Collectives(double timeout_seconds) : timeout_seconds_(timeout_seconds) {}
  // All ranks together, when whoever has the transport is made.
  void open(std::shared_ptr<void> owner, comm::Transport& transport,
            comm::CommunicatorOptions options);

 private:
  double timeout_seconds_;
  std::shared_ptr<void> owner_;  // of the transport
  std::unique_ptr<comm::Communicator> communicator_;
};

}  // namespace renkei::python
