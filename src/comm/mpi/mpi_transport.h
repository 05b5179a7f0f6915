#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/transport/transport.h"

namespace renkei::comm {

// All ranks of MPI_COMM_WORLD, over a communicator of its own. MPI must be initialised.
std::unique_ptr<Transport> make_mpi_transport(std::vector<std::string> hosts);

}  // namespace renkei::comm
