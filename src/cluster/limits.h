// Limits of the operating system that a large job runs into. MN-1's jobs of 800 ranks and more
// failed in the middle because of file descriptors and stack; here they fail at start, with the
// command that raises the limit.
#pragma once

#include <cstdint>

namespace renkei::cluster {

struct Limits {
  int64_t descriptors;  // soft limit of open files; -1: unlimited
  int64_t stack_bytes;  // soft limit of the stack; -1: unlimited
};

Limits current_limits();

// What a job of this many ranks may need of each process: a socket to every other rank in each
// direction plus files; connection tables of MPI libraries live on the stack.
Limits needed_limits(int ranks);

// Throws a usage Error that names the limit and the command that raises it.
void check_limits(const Limits& have, int ranks);

}  // namespace renkei::cluster
