#pragma once

#include <cstddef>

namespace renkei::compute {

// Memory for the duration of one kernel, kept for the next: one piece for each thread and slot (0
// to 4), valid until the thread's next call with the same slot. It starts on a cache line.
float* scratch(size_t count, int slot = 0);

size_t scratch_bytes();  // of all threads

}  // namespace renkei::compute
