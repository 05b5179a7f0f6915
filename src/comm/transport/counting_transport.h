// Many ranks in one thread, to count what they send. Messages arrive at once and in order, no time
// passes, and which rank runs when is the same in every run: each is a fiber (fiber.h) that goes on
// until it has to wait. Buffers without data cost nothing but their counts, so that an allreduce of
// 1 GiB among thousands of ranks fits one process; messages that have bytes carry them.
//
// When all ranks wait, the clock jumps to the first deadline, which then has passed: ranks that
// wait for each other end with the error that they would end with after their real patience.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/transport/transport.h"

namespace renkei::comm {

struct Traffic {
  int64_t messages_sent = 0, bytes_sent = 0;
  int64_t messages_received = 0, bytes_received = 0;
  bool operator==(const Traffic&) const = default;
};

struct CountingOptions {
  std::vector<std::string> hosts = {};  // one name per rank; empty: all "counting-host"
  size_t stack_bytes = 256 << 10;       // of a rank; what it does not use takes no memory
};

// Runs `body` once per rank and returns what each has sent and received. A rank that throws ends
// all, as in run_as_threads().
std::vector<Traffic> run_counting(int ranks, const std::function<void(Transport&)>& body,
                                  const CountingOptions& options = {});

}  // namespace renkei::comm
