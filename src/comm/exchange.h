// What the collectives have in common: their tags, their names in error messages, and the one safe
// way to send and receive at the same time.
#pragma once

#include "comm/transport.h"

namespace renkei::comm {

// Tags below kFirstCollectiveTag are free for point-to-point messages. A tag per collective means
// that ranks which call different ones time out with both names instead of mixing their bytes. MPI
// promises tags up to 32767 only.
constexpr int kFirstCollectiveTag = 16384;
enum class Tag : int {
  barrier = kFirstCollectiveTag,
  broadcast,
  all_gather,
  reduce_scatter,
  reference,
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

}  // namespace renkei::comm
