#include "comm/transport.h"

#include "base/error.h"
#include "base/units.h"

namespace renkei::comm {

std::vector<int> local_ranks(const Transport& transport) {
  std::vector<int> ranks;
  for (int rank = 0; rank < transport.size(); ++rank)
    if (transport.host(rank) == transport.host(transport.rank())) ranks.push_back(rank);
  return ranks;
}

std::string name_of_rank(const Transport& transport, int rank) {
  return fmt::format("rank {} (host {})", transport.job_rank(rank), transport.host(rank));
}

std::shared_ptr<SharedRegion> Transport::share(size_t bytes) {
  return share_among(local_ranks(*this), bytes);
}

void throw_timeout(const Transport& transport, int peer, const Call& call) {
  const std::string step = call.step >= 0 ? fmt::format(", step {}", call.step) : "";
  Error error(ErrorCode::communication,
              fmt::format("{} waited {} for {} in {}{}", name_of_rank(transport, transport.rank()),
                          format_duration(call.timeout_seconds), name_of_rank(transport, peer),
                          call.operation, step),
              "look at the log of the rank that did not arrive; a slow network or file system may "
              "need a longer comm.timeout");
  error.rank = transport.job_rank(peer);
  error.host = transport.host(peer);
  if (call.step >= 0) error.step = call.step;
  throw error;
}

}  // namespace renkei::comm
