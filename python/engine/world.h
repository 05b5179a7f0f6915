// The ranks of the job, as Python sees them: who am I, and the collectives that scripts use
// themselves. Everything that waits gives up Python's lock.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/mpi_world.h"

namespace renkei::python {

class World {
 public:
  // Starts MPI, checks that the launcher belongs to it, and divides the cores of a host.
  explicit World(double timeout_seconds);

  int rank() { return transport().rank(); }
  int size() { return transport().size(); }
  int local_rank();
  int local_size();
  std::string host() { return transport().host(rank()); }
  int threads() const { return threads_; }  // that a rank may use
  double timeout_seconds() const { return timeout_seconds_; }

  comm::Transport& transport() { return world_.transport(); }
  comm::Communicator& communicator() { return *communicator_; }
  comm::Call call(std::string_view operation) const {
    return {.operation = operation, .timeout_seconds = timeout_seconds_};
  }

  void barrier(const std::string& operation);
  // In place; `reduction` is sum, mean, max or min.
  void allreduce(torch::Tensor tensor, const std::string& reduction, const std::string& operation);
  void broadcast(torch::Tensor tensor, int root, const std::string& operation);
  std::vector<std::string> allgather(const std::string& mine, const std::string& operation);

  // Tells the others, and waits until all have come to their end.
  void close();
  // Ends all ranks. `message` has what Python printed; told by the supervisor where there is one.
  [[noreturn]] void fail(const std::string& message, const std::string& hint, int exit_code);

 private:
  comm::MpiWorld world_;
  double timeout_seconds_;
  int threads_ = 1;
  std::unique_ptr<comm::Communicator> communicator_;
};

}  // namespace renkei::python
