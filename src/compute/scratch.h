#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace renkei::compute {

// Memory for the duration of one kernel, kept for the next: one piece for each thread, valid until
// the thread's next call with the same slot. It starts on a cache line.
inline float* scratch(size_t count, int slot = 0) {
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  struct Piece {
    std::unique_ptr<float, Free> memory;
    size_t bytes = 0;
  };
  static thread_local Piece pieces[4];
  Piece& piece = pieces[slot];
  const size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
  if (piece.bytes < bytes) {
    piece.memory.reset();
    piece.memory.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (!piece.memory) throw std::bad_alloc();
    piece.bytes = bytes;
  }
  return piece.memory.get();
}

}  // namespace renkei::compute
