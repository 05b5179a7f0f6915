#include "comm/shared_memory/lines.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace renkei::comm {

Range line_chunk(const Buffer& buffer, int ranks, int r) {
  const size_t line = kLineBytes / size_of(buffer.dtype);
  const size_t head = reinterpret_cast<uintptr_t>(buffer.data) % kLineBytes / size_of(buffer.dtype);
  const Range lines = chunk_range((head + buffer.count + line - 1) / line, ranks, r);
  const auto element = [&](size_t index) {
    return std::min(buffer.count, std::max(index * line, head) - head);
  };
  return {element(lines.begin), element(lines.end)};
}

void copy_bytes(std::byte* into, const std::byte* from, size_t bytes) {
  constexpr size_t kStep = 256, kAhead = 1024;
  size_t at = 0;
  for (; at + kStep <= bytes; at += kStep) {
    const size_t ahead = std::min(at + kAhead, bytes);  // what lies behind may be another rank's
    for (size_t line = ahead; line < std::min(ahead + kStep, bytes); line += kLineBytes) {
      hwy::Prefetch(from + line);
      hwy::Prefetch(into + line);
    }
    std::memcpy(into + at, from + at, kStep);
  }
  if (at < bytes) std::memcpy(into + at, from + at, bytes - at);
}

}  // namespace renkei::comm
