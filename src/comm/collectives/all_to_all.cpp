#include "comm/collectives/all_to_all.h"

#include <algorithm>

#include "base/error.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {

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

}  // namespace renkei::comm
