// Samples that ranks keep for each other, asked for by messages.
//
//   a rank that needs sample s          rank s mod ranks, a thread of its own
//   Ask{find, s}            ──────►     looks into its cache
//   Answer{length}, bytes   ◄──────     or: not there, and whether there is room
//   reads it from storage
//   Ask{keep, s}, bytes     ──────►     keeps it
//
// A rank that ends says so, and goes on answering until all others have ended too.
#pragma once

#include <memory>

#include "comm/transport/transport.h"
#include "data/loader/peer_cache.h"

namespace renkei::staging {

// All ranks together, one at a time. The transport must allow several threads, and outlive it.
std::unique_ptr<data::PeerCache> make_message_cache(comm::Transport& transport,
                                                    double timeout_seconds);

}  // namespace renkei::staging
