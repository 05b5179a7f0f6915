// Who works on which block of a buffer that the ranks of a host divide among them. Each rank has a
// chunk and does its blocks; where the buffer is large, a rank that has done its own takes blocks
// of others from a counter that all see: a core that other programs use too, or one for two ranks,
// does not hold all up.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/buffer/chunk_range.h"

namespace renkei::comm {

class BlockSharing {
 public:
  // Buffers that do not fit the caches are passed in blocks, in turns from the front and from the
  // back: what was passed last is still there the next time.
  static constexpr size_t kBlockBytes = 256 << 10;

  BlockSharing() = default;
  // The counters of all ranks, zero at first, in memory that all share.
  BlockSharing(std::vector<std::atomic<uint64_t>*> taken, int me)
      : taken_(std::move(taken)), before_(taken_.size()), me_(me) {}

  // chunk(rank) is the Range of elements of a rank; work(rank, Range) does some of them. All ranks
  // call it together with the same arguments.
  template <typename Chunk, typename Work>
  void run(size_t element_bytes, bool help, Chunk chunk, Work work) {
    const size_t ranks = taken_.size(), block = kBlockBytes / element_bytes;
    for (size_t turn = 0; turn < (help ? ranks : 1); ++turn) {
      const size_t owner = (static_cast<size_t>(me_) + turn) % ranks;
      const Range range = chunk(static_cast<int>(owner));
      const size_t blocks = (range.size() + block - 1) / block;
      const auto do_block = [&](size_t k) {
        const size_t begin = range.begin + (backwards_ ? blocks - 1 - k : k) * block;
        work(static_cast<int>(owner), Range{begin, std::min(range.end, begin + block)});
      };
      if (!help) {
        for (size_t k = 0; k < blocks; ++k) do_block(k);
        break;
      }
      while (true) {
        const uint64_t k = taken_[owner]->fetch_add(1, std::memory_order_relaxed) - before_[owner];
        if (k >= blocks) break;
        do_block(k);
      }
      before_[owner] += blocks + ranks;  // every rank has asked for one too many
    }
    backwards_ = !backwards_;
  }

 private:
  std::vector<std::atomic<uint64_t>*> taken_;
  std::vector<uint64_t> before_;  // of each rank's chunks, before this operation
  int me_ = 0;
  bool backwards_ = false;
};

}  // namespace renkei::comm
