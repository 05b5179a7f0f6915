// What the collectives have in common: their tags, their names in error messages, segments, and the
// safe ways to send and receive at the same time.
#pragma once

#include <vector>

#include "comm/reduce.h"
#include "comm/transport.h"

namespace renkei::comm {

// Tags below kFirstCollectiveTag are free for point-to-point messages. A tag per collective means
// that ranks which call different ones time out with both names instead of mixing their bytes. MPI
// promises tags up to 32767 only, which is room for 64 channels (see sub_transport.h).
constexpr int kFirstCollectiveTag = 16384;
constexpr int kTagsPerChannel = 256;
enum class Tag : int {
  barrier = kFirstCollectiveTag,
  broadcast,
  all_gather,
  reduce_scatter,
  reference,
  agreement,
  ring,
  halving_doubling,
  tree,
  all_to_all,
  reproducible,
  measurement,
  gather,
};

// The same call under the collective's name, unless the caller gave it a better one.
Call with_name(Call call, std::string_view name);

// Place `index` on a ring of n.
constexpr int wrap(int index, int n) {
  return (index % n + n) % n;
}

void send_and_wait(Transport& transport, int to, std::span<const std::byte> bytes, Tag tag,
                   const Call& call);
void receive_and_wait(Transport& transport, int from, std::span<std::byte> bytes, Tag tag,
                      const Call& call);

// Both at once. The receive is posted first: a whole ring may call this over a transport on which a
// send waits for its receive.
void exchange(Transport& transport, int to, std::span<const std::byte> outgoing, int from,
              std::span<std::byte> incoming, Tag tag, const Call& call);

// A buffer travels as segments, each a message of its own, so that one is reduced while the next is
// on its way. Both sides cut the same way. An empty buffer has none.
constexpr size_t kDefaultSegmentBytes = 256 * 1024;
std::vector<Buffer> segments_of(Buffer buffer, size_t segment_bytes);  // 0: the default

// Sends `outgoing` to the peer and reduces what it sends into `into`; either may be empty. Segments
// are received up to kReceiveWindow ahead of the one that is being reduced.
constexpr size_t kReceiveWindow = 4;
void exchange_and_reduce(Transport& transport, int peer, Buffer outgoing, Buffer into,
                         Reduction reduction, size_t segment_bytes, Tag tag, const Call& call);

// The last step of a mean over n ranks; nothing for other reductions.
void finish_mean(Buffer sum, Reduction reduction, int ranks);

}  // namespace renkei::comm
