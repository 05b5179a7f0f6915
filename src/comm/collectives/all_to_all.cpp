#include "comm/collectives/all_to_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

// Where each rank's part begins.
std::vector<size_t> begins_of(std::span<const size_t> counts, size_t count, int ranks) {
  std::vector<size_t> begins{0};
  for (const size_t one : counts) begins.push_back(begins.back() + one);
  if (counts.size() != static_cast<size_t>(ranks) || begins.back() != count)
    throw Error(ErrorCode::bug, fmt::format("all_to_all_v of {} elements, but the {} counts say {}",
                                            count, counts.size(), begins.back()));
  return begins;
}

}  // namespace

void all_to_all(Transport& transport, ConstBuffer from, Buffer into, const Call& call,
                Check check) {
  const int n = transport.size(), r = transport.rank();
  if (from.count != into.count || from.dtype != into.dtype ||
      into.count % static_cast<size_t>(n) != 0)
    throw Error(ErrorCode::bug,
                fmt::format("all_to_all of {} {} into {} {} on {} ranks", from.count,
                            name_of(from.dtype), into.count, name_of(into.dtype), n));
  const Call named = with_name(call, "all_to_all");
  if (check == Check::agreement)
    check_agreement(
        transport, {.collective = Collective::all_to_all, .dtype = into.dtype, .count = into.count},
        named);
  const size_t count = into.count / static_cast<size_t>(n);
  const auto part = [&](auto buffer, int rank) {
    return buffer.part(static_cast<size_t>(rank) * count, count).span();
  };
  if (into.data) std::ranges::copy(part(from, r), part(into, r).begin());
  for (int s = 1; s < n; ++s) {
    const int to = wrap(r + s, n), source = wrap(r - s, n);
    exchange(transport, to, part(from, to), source, part(into, source), Tag::all_to_all, named);
  }
}

void all_to_all_v(Transport& transport, ConstBuffer from, std::span<const size_t> sent, Buffer into,
                  std::span<const size_t> received, const Call& call, Check check) {
  const int n = transport.size(), r = transport.rank();
  const std::vector<size_t> out = begins_of(sent, from.count, n),
                            in = begins_of(received, into.count, n);
  const auto part = [](auto buffer, const std::vector<size_t>& begins, int rank) {
    const auto i = static_cast<size_t>(rank);
    return buffer.part(begins[i], begins[i + 1] - begins[i]).span();
  };
  const auto own = static_cast<size_t>(r);
  if (from.dtype != into.dtype || sent[own] != received[own])
    throw Error(ErrorCode::bug,
                fmt::format("all_to_all_v of {} {} into {} {} for the rank itself", sent[own],
                            name_of(from.dtype), received[own], name_of(into.dtype)));
  const Call named = with_name(call, "all_to_all_v");
  if (check == Check::agreement)
    check_agreement(transport,
                    {.collective = Collective::all_to_all, .dtype = into.dtype, .variant = 1},
                    named);
  std::ranges::copy(part(from, out, r), part(into, in, r).begin());
  for (int s = 1; s < n; ++s) {
    const int to = wrap(r + s, n), source = wrap(r - s, n);
    exchange(transport, to, part(from, out, to), source, part(into, in, source), Tag::all_to_all,
             named);
  }
}

}  // namespace renkei::comm
