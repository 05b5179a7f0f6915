// Cache lines, in which shared memory moves between cores.
#pragma once

#include <cstddef>

#include "comm/buffer/chunk_range.h"
#include "comm/buffer/dtype.h"

namespace renkei::comm {

constexpr size_t kLineBytes = 64;

// The chunk of rank r in elements, with borders between cache lines, so that no two ranks write to
// the same line. Buffers of all ranks lie equally in their lines.
Range line_chunk(const Buffer& buffer, int ranks, int r);

// In short steps: the C library copies long pieces with one instruction for all of it, or past the
// caches, which takes 3 to 5 times as long where another core has the memory in its cache.
void copy_bytes(std::byte* into, const std::byte* from, size_t bytes);

}  // namespace renkei::comm
