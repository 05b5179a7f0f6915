#include "comm/message_collectives.h"

#include <cstring>

#include "base/error.h"

namespace renkei::comm {

void MessageCollectives::reduce(ConstBuffer from, Buffer into, Reduction reduction,
                                std::optional<int> root, const Call& call) {
  check_reduction(from.dtype, reduction);
  // An algorithm that spares the other ranks the result would spare half of the bytes.
  std::vector<std::byte> scratch;
  if (root && *root != communicator_.transport().rank()) {
    scratch.resize(from.bytes());
    into = Buffer(scratch.data(), from.count, from.dtype);
  }
  if (into.data != from.data && from.count > 0) std::memcpy(into.data, from.data, from.bytes());
  communicator_.allreduce(into, reduction, call);
}

void MessageCollectives::reduce_scatter(const std::vector<const std::byte*>& from, Buffer into,
                                        Reduction reduction, const Call& call) {
  check_reduction(into.dtype, reduction);
  std::vector<std::byte> all(into.bytes() * from.size());
  for (size_t rank = 0; rank < from.size(); ++rank)
    if (into.count > 0) std::memcpy(all.data() + rank * into.bytes(), from[rank], into.bytes());
  const Buffer mine = communicator_.reduce_scatter(
      Buffer(all.data(), into.count * from.size(), into.dtype), reduction, call);
  if (into.count > 0) std::memcpy(into.data, mine.data, into.bytes());
}

void MessageCollectives::exchange(const Parts& parts, uint64_t count, const Call& call) {
  communicator_.exchange(parts, count, call);
}

}  // namespace renkei::comm
