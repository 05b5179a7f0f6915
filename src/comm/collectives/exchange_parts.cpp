#include "comm/collectives/exchange_parts.h"

#include <cstring>

#include "comm/collectives/exchange.h"

namespace renkei::comm {

void exchange_parts(Transport& transport, const Parts& parts, uint64_t count, const Call& call) {
  const int n = transport.size(), me = transport.rank();
  const auto& own = parts.to[static_cast<size_t>(me)];
  const auto& own_place = parts.from[static_cast<size_t>(me)];
  if (own.size() != own_place.size())
    throw_sizes_differ(transport, me, own_place.size(), own.size(), call);
  if (!own.empty() && own.data() != own_place.data())
    std::memmove(own_place.data(), own.data(), own.size());
  check_agreement(transport,
                  {.collective = Collective::all_to_all, .dtype = DType::u8, .count = count}, call);
  for (int step = 1; step < n; ++step) {
    const int to = wrap(me + step, n), from = wrap(me - step, n);
    const auto& outgoing = parts.to[static_cast<size_t>(to)];
    const auto& incoming = parts.from[static_cast<size_t>(from)];
    const uint64_t sent = outgoing.size();
    uint64_t announced = 0;
    exchange(transport, to, std::as_bytes(std::span(&sent, 1)), from,
             std::as_writable_bytes(std::span(&announced, 1)), Tag::all_to_all, call);
    if (announced != incoming.size())
      throw_sizes_differ(transport, from, incoming.size(), announced, call);
    exchange(transport, to, outgoing, from, incoming, Tag::all_to_all, call);
  }
}

}  // namespace renkei::comm
