#include "comm/agreement.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

// As it travels; the same layout on every machine that we run on (little-endian).
struct Header {
  uint8_t collective = 0;
  uint8_t dtype = 0;
  uint8_t reduction = 0;
  uint8_t unused[5] = {};
  int32_t root = 0;
  uint32_t variant = 0;
  uint64_t count = 0;
  int64_t step = 0;
  char name[32] = {};  // the beginning of Call::operation, padded with zeros
};
static_assert(sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>);

Header header_of(const Agreement& mine, const Call& call) {
  Header header;
  header.collective = static_cast<uint8_t>(mine.collective);
  header.dtype = static_cast<uint8_t>(mine.dtype);
  header.reduction = static_cast<uint8_t>(mine.reduction);
  header.root = mine.root;
  header.variant = mine.variant;
  header.count = mine.count;
  header.step = call.step;
  call.operation.copy(header.name, sizeof header.name);
  return header;
}

// "allreduce (sum) of 4 f32 in step 7, "allreduce of the gradients""
std::string description_of(const Header& header) {
  const auto collective = static_cast<Collective>(header.collective);
  std::string text(name_of(collective));
  if (collective == Collective::allreduce || collective == Collective::reduce_scatter)
    text += fmt::format(" ({})", name_of(static_cast<Reduction>(header.reduction)));
  if (collective == Collective::broadcast) text += fmt::format(" from rank {}", header.root);
  text += fmt::format(" of {} {}", header.count, name_of(static_cast<DType>(header.dtype)));
  if (header.step >= 0) text += fmt::format(" in step {}", header.step);
  const std::string_view name(header.name, strnlen(header.name, sizeof header.name));
  if (name != name_of(collective)) text += fmt::format(" (\"{}\")", name);
  return text;
}

}  // namespace

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return "allreduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
    case Collective::broadcast:
      return "broadcast";
    case Collective::all_to_all:
      return "all_to_all";
  }
  return "an unknown collective";
}

void check_agreement(Transport& transport, const Agreement& mine, const Call& call) {
  const int n = transport.size(), r = transport.rank();
  if (n == 1) return;
  const int left = wrap(r - 1, n), right = wrap(r + 1, n);
  const Header ours = header_of(mine, call);
  Header theirs;
  exchange(transport, right, std::as_bytes(std::span(&ours, 1)), left,
           std::as_writable_bytes(std::span(&theirs, 1)), Tag::agreement, call);
  if (std::memcmp(&ours, &theirs, sizeof ours) == 0) return;

  std::string theirs_text = description_of(theirs);
  if (theirs_text == description_of(ours)) theirs_text += " with other options";
  Error error(ErrorCode::communication,
              fmt::format("{} calls {}, but {} calls {}", name_of_rank(transport, r),
                          description_of(ours), name_of_rank(transport, left), theirs_text),
              "all ranks must call the same operations with the same counts in the same order");
  error.rank = transport.job_rank(left);
  error.host = transport.host(left);
  if (call.step >= 0) error.step = call.step;
  throw error;
}

uint32_t hash_of(std::span<const size_t> values) {
  uint32_t hash = 2166136261u;
  for (const size_t value : values)
    for (int shift = 0; shift < 64; shift += 8)
      hash = (hash ^ static_cast<uint8_t>(uint64_t{value} >> shift)) * 16777619u;
  return hash;
}

}  // namespace renkei::comm
