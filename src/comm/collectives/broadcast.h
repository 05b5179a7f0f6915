#pragma once

#include "comm/agreement.h"
#include "comm/buffer/dtype.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

// Copies the root's buffer into every rank's: down a tree when it is small, along a chain when it
// is large.
void broadcast(Transport& transport, Buffer buffer, int root, const Call& call = {},
               Check check = Check::agreement);

// Which of the two that would be.
bool broadcasts_by_tree(const Transport& transport, size_t bytes);

// ceil(log2 n) rounds of the whole buffer.
void tree_broadcast(Transport& transport, Buffer buffer, int root, const Call& call);

// Every rank passes the segments on to the next one while it receives those behind them.
void chain_broadcast(Transport& transport, Buffer buffer, int root, size_t segment_bytes,
                     const Call& call);

}  // namespace renkei::comm
