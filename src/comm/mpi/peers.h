// Other libraries' allreduce, to be measured beside ours in the same processes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/transport/transport.h"

namespace renkei::comm {

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual void allreduce(std::span<float> buffer) = 0;  // sum, in place
};

// The linked MPI library's MPI_Allreduce: as it is, and, where the library lets us (Open MPI), with
// each of its algorithms for large buffers. Call prepare_mpi_peers() before MPI is initialised.
void prepare_mpi_peers();
std::vector<std::unique_ptr<Peer>> make_mpi_peers();

}  // namespace renkei::comm
