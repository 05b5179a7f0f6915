#include "compute/scratch.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace renkei::compute {
namespace {

std::atomic<size_t> all_bytes = 0;

class Piece {
 public:
  ~Piece() { release(); }
  float* of_size(size_t bytes) {
    if (bytes > bytes_) {
      release();
      memory_ = static_cast<float*>(std::aligned_alloc(64, bytes));
      if (!memory_) throw std::bad_alloc();
      bytes_ = bytes;
      all_bytes += bytes;
    }
    return memory_;
  }

 private:
  void release() {
    std::free(memory_);
    all_bytes -= bytes_;
    memory_ = nullptr;
    bytes_ = 0;
  }

  float* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace

float* scratch(size_t count, int slot) {
  static thread_local Piece pieces[5];
  return pieces[slot].of_size((count * sizeof(float) + 63) / 64 * 64);
}

size_t scratch_bytes() {
  return all_bytes;
}

}  // namespace renkei::compute
