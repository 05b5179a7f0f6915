#pragma once

#include <memory>
#include <string>

#include "comm/mpi/mpi_transport.h"

namespace renkei::comm {

// The MPI library of this process and all its ranks. One per process; made in main, handed down.
class MpiWorld {
 public:
  // Initialises MPI with support for several threads, unless another library of the process
  // (mpi4py) has done so, learns the host of every rank and ends with a barrier: late nodes are
  // found here, not in the first collective of the training.
  explicit MpiWorld(BlockingCalls tell = {});
  // All ranks together, at an orderly end, which waits for all of them. A process that ends with an
  // error ends without it.
  void close();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  Transport& transport() { return *transport_; }
  int hosts() const;        // number of different hosts
  int local_ranks() const;  // ranks on the host of this one

  // Ends all ranks with this exit code; for errors that the other ranks cannot know of.
  [[noreturn]] void abort(int exit_code);

 private:
  BlockingCalls tell_;
  std::unique_ptr<Transport> transport_;
  bool initialised_here_ = false;  // who initialises MPI ends it
};

// "Open MPI 4.1.4"; may be called before MPI is initialised.
std::string mpi_library();

}  // namespace renkei::comm
