#include "comm/reference.h"

#include <algorithm>
#include <vector>

#include "comm/chunk_range.h"
#include "comm/exchange.h"

namespace renkei::comm::reference {
namespace {

void send_from_rank_0_to_all(Transport& transport, std::span<std::byte> bytes, const Call& call) {
  if (transport.rank() != 0) return receive_and_wait(transport, 0, bytes, Tag::reference, call);
  for (int to = 1; to < transport.size(); ++to)
    send_and_wait(transport, to, bytes, Tag::reference, call);
}

}  // namespace

void barrier(Transport& transport, const Call& call) {
  const Call named = with_name(call, "reference barrier");
  if (transport.rank() != 0) {
    send_and_wait(transport, 0, {}, Tag::reference, named);
  } else {
    for (int from = 1; from < transport.size(); ++from)
      receive_and_wait(transport, from, {}, Tag::reference, named);
  }
  send_from_rank_0_to_all(transport, {}, named);
}

template <typename T>
void broadcast(Transport& transport, std::span<T> buffer, int root, const Call& call) {
  const Call named = with_name(call, "reference broadcast");
  const auto bytes = std::as_writable_bytes(buffer);
  if (root != 0 && transport.rank() == root)
    send_and_wait(transport, 0, bytes, Tag::reference, named);
  if (root != 0 && transport.rank() == 0)
    receive_and_wait(transport, root, bytes, Tag::reference, named);
  send_from_rank_0_to_all(transport, bytes, named);
}

template <typename T>
void all_gather_v(Transport& transport, std::span<const std::type_identity_t<T>> mine,
                  std::span<T> all, std::span<const size_t> counts, const Call& call) {
  const Call named = with_name(call, "reference all_gather_v");
  if (transport.rank() != 0) {
    send_and_wait(transport, 0, std::as_bytes(mine), Tag::reference, named);
  } else {
    std::copy(mine.begin(), mine.end(), all.begin());
    size_t offset = counts[0];
    for (int from = 1; from < transport.size(); ++from) {
      const auto part = all.subspan(offset, counts[static_cast<size_t>(from)]);
      receive_and_wait(transport, from, std::as_writable_bytes(part), Tag::reference, named);
      offset += part.size();
    }
  }
  send_from_rank_0_to_all(transport, std::as_writable_bytes(all), named);
}

template <typename T>
void all_gather(Transport& transport, std::span<const std::type_identity_t<T>> mine,
                std::span<T> all, const Call& call) {
  const std::vector<size_t> counts(static_cast<size_t>(transport.size()), mine.size());
  all_gather_v(transport, mine, all, counts, with_name(call, "reference all_gather"));
}

template <typename T>
void allreduce(Transport& transport, std::span<T> buffer, Reduction reduction, const Call& call) {
  const Call named = with_name(call, "reference allreduce");
  if (transport.rank() != 0) {
    send_and_wait(transport, 0, std::as_bytes(buffer), Tag::reference, named);
  } else {
    std::vector<T> incoming(buffer.size());
    for (int from = 1; from < transport.size(); ++from) {
      receive_and_wait(transport, from, std::as_writable_bytes(std::span(incoming)), Tag::reference,
                       named);
      reduce<T>(buffer, incoming, reduction);
    }
  }
  send_from_rank_0_to_all(transport, std::as_writable_bytes(buffer), named);
}

template <typename T>
std::span<T> reduce_scatter(Transport& transport, std::span<T> buffer, Reduction reduction,
                            const Call& call) {
  allreduce(transport, buffer, reduction, with_name(call, "reference reduce_scatter"));
  const Range range = chunk_range(buffer.size(), transport.size(), transport.rank());
  return buffer.subspan(range.begin, range.size());
}

#define RENKEI_INSTANTIATE_MOVES(T)                                                    \
  template void broadcast(Transport&, std::span<T>, int, const Call&);                 \
  template void all_gather(Transport&, std::span<const T>, std::span<T>, const Call&); \
  template void all_gather_v(Transport&, std::span<const T>, std::span<T>,             \
                             std::span<const size_t>, const Call&);
#define RENKEI_INSTANTIATE_REDUCTIONS(T)                                                  \
  template std::span<T> reduce_scatter(Transport&, std::span<T>, Reduction, const Call&); \
  template void allreduce(Transport&, std::span<T>, Reduction, const Call&);
RENKEI_INSTANTIATE_MOVES(float)
RENKEI_INSTANTIATE_MOVES(double)
RENKEI_INSTANTIATE_MOVES(int64_t)
RENKEI_INSTANTIATE_MOVES(uint8_t)
RENKEI_INSTANTIATE_MOVES(std::byte)
RENKEI_INSTANTIATE_REDUCTIONS(float)
RENKEI_INSTANTIATE_REDUCTIONS(double)
RENKEI_INSTANTIATE_REDUCTIONS(int64_t)
#undef RENKEI_INSTANTIATE_MOVES
#undef RENKEI_INSTANTIATE_REDUCTIONS

}  // namespace renkei::comm::reference
