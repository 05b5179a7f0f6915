#include "comm/shared_memory/share_meeting.h"

#include <algorithm>

#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

void check_equal(const Transport& transport, int peer, uint64_t mine, uint64_t theirs) {
  if (mine == theirs) return;
  Error error(ErrorCode::communication,
              fmt::format("{} shares {} bytes, but {} {} bytes", name_of_rank(transport, peer),
                          theirs, name_of_rank(transport, transport.rank()), mine),
              "all ranks that share memory must ask for the same amount of it");
  error.rank = transport.job_rank(peer);
  error.host = transport.host(peer);
  throw error;
}

}  // namespace

void meet_to_share(Transport& transport, const std::vector<int>& ranks, size_t bytes,
                   const Call& call) {
  const Call named = with_name(call, "creation of shared memory");
  const uint64_t mine = bytes;
  std::vector<uint64_t> theirs(ranks.size());
  std::vector<Request> receiving(ranks.size()), sending(ranks.size());
  constexpr int kTag = static_cast<int>(Tag::share);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != transport.rank())
      receiving[i] =
          transport.receive(ranks[i], std::as_writable_bytes(std::span(&theirs[i], 1)), kTag);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != transport.rank())
      sending[i] = transport.send(ranks[i], std::as_bytes(std::span(&mine, 1)), kTag);
  const double end = transport.clock().seconds() + named.timeout_seconds;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == transport.rank()) continue;
    Call rest = named;
    rest.timeout_seconds = std::max(0.0, end - transport.clock().seconds());
    try {
      transport.wait(receiving[i], rest);
    } catch (const Timeout&) {
      throw_timeout(transport, ranks[i], named);  // with all of the time in its words
    }
    check_equal(transport, ranks[i], mine, theirs[i]);
  }
  for (Request& request : sending) transport.wait(request, named);
}

}  // namespace renkei::comm
