// What the collectives have in common: their names in error messages, segments, and the safe ways
// to send and receive at the same time.
#pragma once

#include <algorithm>

#include "comm/buffer/reduce.h"
#include "comm/transport/tags.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

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
class Segments {
 public:
  Segments(Buffer buffer, size_t segment_bytes);  // 0: the default
  size_t size() const { return (buffer_.count + elements_ - 1) / elements_; }
  Buffer operator[](size_t g) const {
    const size_t first = g * elements_;
    return buffer_.part(first, std::min(elements_, buffer_.count - first));
  }
  // Of the largest one, which is the first.
  size_t bytes() const { return std::min(elements_, buffer_.count) * size_of(buffer_.dtype); }

 private:
  Buffer buffer_;
  size_t elements_;  // of all but the last one
};

// Sends `outgoing` to the peer and reduces what it sends into `into`; either may be empty. Segments
// are received up to kReceiveWindow ahead of the one that is being reduced.
constexpr size_t kReceiveWindow = 4;
void exchange_and_reduce(Transport& transport, int peer, Buffer outgoing, Buffer into,
                         Reduction reduction, size_t segment_bytes, Tag tag, const Call& call);

// The last step of a mean over n ranks; nothing for other reductions.
void finish_mean(Buffer sum, Reduction reduction, int ranks);

}  // namespace renkei::comm
