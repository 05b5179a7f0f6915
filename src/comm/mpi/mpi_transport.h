#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/transport/transport.h"

namespace renkei::comm {

// MPI gives no deadline for some of its calls. This is told before one of them ("start-up of MPI"),
// and with an empty text behind it, so that somebody outside can watch.
using BlockingCalls = std::function<void(std::string_view)>;

class InsideOfMpi {
 public:
  InsideOfMpi(const BlockingCalls& tell, std::string_view what) : tell_(tell) {
    if (tell_) tell_(what);
  }
  ~InsideOfMpi() {
    if (tell_) tell_({});
  }
  InsideOfMpi(const InsideOfMpi&) = delete;
  InsideOfMpi& operator=(const InsideOfMpi&) = delete;

 private:
  const BlockingCalls& tell_;
};

// All ranks of MPI_COMM_WORLD, over a communicator of its own. MPI must be initialised.
std::unique_ptr<Transport> make_mpi_transport(std::vector<std::string> hosts,
                                              BlockingCalls tell = {});

}  // namespace renkei::comm
