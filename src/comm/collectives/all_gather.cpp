// Ring all-gather: each part travels once around (see ring.h). A rank sends (n-1)/n of the result,
// the least that is possible, in n-1 steps.

#include "comm/collectives/all_gather.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "comm/allreduce/ring.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

std::vector<Buffer> parts_of(const Transport& transport, ConstBuffer mine, Buffer all,
                             std::span<const size_t> counts) {
  const auto n = static_cast<size_t>(transport.size()), r = static_cast<size_t>(transport.rank());
  if (counts.size() != n)
    throw Error(ErrorCode::bug,
                fmt::format("all_gather with {} counts for {} ranks", counts.size(), n));
  if (mine.dtype != all.dtype)
    throw Error(ErrorCode::bug,
                fmt::format("all_gather of {} into {}", name_of(mine.dtype), name_of(all.dtype)));
  std::vector<Buffer> parts;
  size_t total = 0;
  for (const size_t count : counts) {
    parts.push_back(all.part(total, count));
    total += count;
  }
  if (mine.count != counts[r] || all.count != total)
    throw Error(ErrorCode::bug,
                fmt::format("all_gather of {} elements into {}, but the counts say {} and {}",
                            mine.count, all.count, counts[r], total));
  return parts;
}

}  // namespace

void all_gather_v(Transport& transport, ConstBuffer mine, Buffer all,
                  std::span<const size_t> counts, const Call& call, Check check) {
  const Call named = with_name(call, "all_gather_v");
  const std::vector<Buffer> parts = parts_of(transport, mine, all, counts);
  if (check == Check::agreement)
    check_agreement(transport,
                    {.collective = Collective::all_gather,
                     .dtype = all.dtype,
                     .variant = hash_of(counts),
                     .count = all.count},
                    named);
  const Buffer own_part = parts[static_cast<size_t>(transport.rank())];
  if (own_part.data && mine.data != own_part.data)
    std::copy_n(mine.data, mine.bytes(), own_part.data);
  ring_all_gather(transport, parts, named);
}

void all_gather(Transport& transport, ConstBuffer mine, Buffer all, const Call& call, Check check) {
  const std::vector<size_t> counts(static_cast<size_t>(transport.size()), mine.count);
  all_gather_v(transport, mine, all, counts, with_name(call, "all_gather"), check);
}

}  // namespace renkei::comm
