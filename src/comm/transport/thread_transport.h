// Ranks as threads of this process. Tests and oracles use it: it needs no launcher, sanitizers see
// every rank, and a failure in one rank is an exception in the caller.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/transport/transport.h"

namespace renkei::comm {

struct ThreadOptions {
  std::vector<std::string> hosts = {};  // one name per rank; empty: all "thread-host"

  // Sends complete only when the receiver has posted its receive, as a network may choose to do.
  // Code that is right in both modes does not lean on buffering.
  bool rendezvous = false;

  const Clock* clock = nullptr;  // null: the real one
};

// Runs `body` once per rank and returns when all have. When a rank throws, every rank that waits
// (or waits later) throws a communication Error that names it, and the first exception is rethrown
// here after all threads have ended.
void run_as_threads(int ranks, const std::function<void(Transport&)>& body,
                    const ThreadOptions& options = {});

}  // namespace renkei::comm
