#include "comm/transport/transport.h"

#include "base/error.h"
#include "base/units.h"
#include "comm/shared_memory/share_meeting.h"

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

std::shared_ptr<SharedRegion> Transport::share_among(const std::vector<int>& ranks, size_t bytes,
                                                     const Call& call) {
  meet_to_share(*this, ranks, bytes, call);
  return make_region(ranks, bytes);
}

std::shared_ptr<SharedRegion> Transport::share(size_t bytes, const Call& call) {
  return share_among(local_ranks(*this), bytes, call);
}

namespace {

template <typename SomeError>
[[noreturn]] void throw_blaming(SomeError error, const Transport& transport, int peer,
                                const Call& call) {
  error.rank = transport.job_rank(peer);
  error.host = transport.host(peer);
  if (call.step >= 0) error.step = call.step;
  throw error;
}

}  // namespace

void check_ranks_and_hosts(int ranks, const std::vector<std::string>& hosts) {
  if (ranks < 1)
    throw Error(ErrorCode::usage, fmt::format("{} is not a number of ranks", ranks),
                "ask for at least 1 rank");
  if (!hosts.empty() && hosts.size() != static_cast<size_t>(ranks))
    throw Error(ErrorCode::usage, fmt::format("{} host names for {} ranks", hosts.size(), ranks),
                "give one host name per rank, or none");
}

void throw_timeout(const Transport& transport, int peer, const Call& call) {
  const std::string step = call.step >= 0 ? fmt::format(", step {}", call.step) : "";
  throw_blaming(
      Timeout(ErrorCode::communication,
              fmt::format("{} waited {} for {} in {}{}", name_of_rank(transport, transport.rank()),
                          format_duration(call.timeout_seconds), name_of_rank(transport, peer),
                          call.operation, step),
              "look at the log of the rank that did not arrive; a slow network or file system may "
              "need a longer comm.timeout"),
      transport, peer, call);
}

void throw_sizes_differ(const Transport& transport, int peer, size_t expected, size_t arrived,
                        const Call& call) {
  throw_blaming(
      Error(ErrorCode::communication,
            fmt::format("{} expected {} bytes from {} in {}, but {} bytes arrived",
                        name_of_rank(transport, transport.rank()), expected,
                        name_of_rank(transport, peer), call.operation, arrived),
            "all ranks must call the same operations with the same counts in the same order"),
      transport, peer, call);
}

void throw_failed(const Transport& transport, int failed, const Call& call) {
  throw_blaming(
      Error(ErrorCode::communication, fmt::format("{} gave up {} because {} failed",
                                                  name_of_rank(transport, transport.rank()),
                                                  call.operation, name_of_rank(transport, failed))),
      transport, failed, call);
}

}  // namespace renkei::comm
