// Ring all-gather. The n ranks form a ring; part r of the result is what rank r contributes.
//
//   step s = 0 … n-2: send part (r - s) to the right, receive part (r - s - 1) from the left
//
// so each part travels once around. A rank sends (n-1)/n of the result, the least that is possible,
// in n-1 steps.

#include "comm/all_gather.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "comm/exchange.h"

namespace renkei::comm {
namespace {

// offsets[r] is where part r begins, offsets[n] where the last one ends.
void ring_all_gather(Transport& transport, std::span<std::byte> all,
                     std::span<const size_t> offsets, const Call& call) {
  const int n = transport.size(), r = transport.rank();
  const int left = wrap(r - 1, n), right = wrap(r + 1, n);
  const auto part = [&](int index) {
    const auto p = static_cast<size_t>(wrap(index, n));
    return all.subspan(offsets[p], offsets[p + 1] - offsets[p]);
  };
  for (int s = 0; s < n - 1; ++s)
    exchange(transport, right, part(r - s), left, part(r - s - 1), Tag::all_gather, call);
}

}  // namespace

template <typename T>
void all_gather_v(Transport& transport, std::span<const std::type_identity_t<T>> mine,
                  std::span<T> all, std::span<const size_t> counts, const Call& call) {
  const auto n = static_cast<size_t>(transport.size()), r = static_cast<size_t>(transport.rank());
  if (counts.size() != n)
    throw Error(ErrorCode::bug,
                fmt::format("all_gather with {} counts for {} ranks", counts.size(), n));
  std::vector<size_t> offsets(n + 1, 0);
  for (size_t p = 0; p < n; ++p) offsets[p + 1] = offsets[p] + counts[p] * sizeof(T);
  if (mine.size() != counts[r] || all.size_bytes() != offsets[n])
    throw Error(ErrorCode::bug,
                fmt::format("all_gather of {} elements into {}, but the counts say {} and {}",
                            mine.size(), all.size(), counts[r], offsets[n] / sizeof(T)));
  T* const own_part = all.data() + offsets[r] / sizeof(T);
  if (mine.data() != own_part) std::copy(mine.begin(), mine.end(), own_part);
  ring_all_gather(transport, std::as_writable_bytes(all), offsets, with_name(call, "all_gather_v"));
}

template <typename T>
void all_gather(Transport& transport, std::span<const std::type_identity_t<T>> mine,
                std::span<T> all, const Call& call) {
  const std::vector<size_t> counts(static_cast<size_t>(transport.size()), mine.size());
  all_gather_v(transport, mine, all, counts, with_name(call, "all_gather"));
}

#define RENKEI_INSTANTIATE(T)                                                          \
  template void all_gather(Transport&, std::span<const T>, std::span<T>, const Call&); \
  template void all_gather_v(Transport&, std::span<const T>, std::span<T>,             \
                             std::span<const size_t>, const Call&);
RENKEI_INSTANTIATE(float)
RENKEI_INSTANTIATE(double)
RENKEI_INSTANTIATE(int64_t)
RENKEI_INSTANTIATE(uint8_t)
RENKEI_INSTANTIATE(std::byte)
#undef RENKEI_INSTANTIATE

}  // namespace renkei::comm
