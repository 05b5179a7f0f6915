// The ranks of the job, as Python sees them: who am I, and collectives among all.
#pragma once

#include <memory>
#include <string>

#include "collectives.h"
#include "comm/mpi/mpi_world.h"

namespace renkei::python {

class World : public Collectives {
 public:
  // Starts MPI, checks that the launcher belongs to it, and divides the cores of a host.
  explicit World(double timeout_seconds);

  int local_rank();
  int local_size();
  int hosts() { return world_->hosts(); }
  int host_number();  // of this rank's host among them, by their first ranks
  std::string host() { return transport().host(rank()); }
  int threads() const { return threads_; }  // that a rank may use
  std::vector<int> ranks_of_hosts();        // how many each host has
  // For what goes on using the transport when this is no longer there.
  std::shared_ptr<void> owner() const { return world_; }

  // Tells the others, and waits until all have come to their end.
  void close() override;
  // Ends all ranks. `message` has what Python printed; told by the supervisor where there is one.
  [[noreturn]] void fail(const std::string& message, const std::string& hint, int exit_code);

 private:
  std::shared_ptr<comm::MpiWorld> world_;
  int threads_ = 1;
};

// The same ranks with messages of their own, so that a thread can use it beside everything else.
class QueueRanks : public Collectives {
 public:
  // All ranks together. The world must outlive it.
  explicit QueueRanks(World& world);
};

}  // namespace renkei::python
