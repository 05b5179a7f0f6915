#include "bench/memory_bound.h"

#include <cstring>
#include <vector>

#include "comm/buffer/reduce.h"

namespace renkei::bench {
namespace {

using comm::Collective;
using comm::Reduction;

// Parts that are read together begin a few cache lines apart, as the shared buffers of the ranks
// do (shared_allreduce.cpp): otherwise they throw each other out of the first-level cache.
constexpr size_t kSkewBytes = 17 * 64;
constexpr size_t kLineBytes = 64;

size_t whole_lines(size_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

bool reduces(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce_scatter;
}

}  // namespace

MemoryBound::MemoryBound(Collective collective, comm::DType dtype, int ranks, size_t most_count)
    : collective_(collective), dtype_(dtype), ranks_(ranks) {
  // A copy has a source as large as the result; a reduction has all parts of one buffer.
  const size_t buffers = reduces(collective) ? 1 : 2;
  const size_t parts = reduces(collective) ? static_cast<size_t>(ranks) : 2;
  memory_ = std::make_unique<std::byte[]>(buffers * most_count * comm::size_of(dtype) +
                                          (parts + 1) * (kSkewBytes + kLineBytes));
}

std::byte* MemoryBound::place(int part, size_t bytes) const {
  const size_t to_line = kLineBytes - reinterpret_cast<uintptr_t>(memory_.get()) % kLineBytes;
  return memory_.get() + to_line + static_cast<size_t>(part) * (whole_lines(bytes) + kSkewBytes);
}

void MemoryBound::run(size_t count, Buffers buffers) {
  const auto n = static_cast<size_t>(ranks_);
  if (!reduces(collective_)) {
    const size_t bytes = count * comm::size_of(dtype_);
    const size_t moved = collective_ == Collective::all_gather ? bytes / n * (n - 1) : bytes;
    if (moved > 0) std::memcpy(place(0, moved), place(1, moved), moved);
    return;
  }
  const size_t chunk = count / n;
  if (chunk == 0) return;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> copies;
  for (int part = 0; part < ranks_; ++part) {
    std::byte* const begin = place(part, chunk * comm::size_of(dtype_));
    sources.push_back(begin);
    const bool spread = collective_ == Collective::allreduce && buffers != Buffers::once;
    if (part > 0 && spread) copies.push_back(begin);
  }
  comm::reduce_and_spread({place(0, chunk * comm::size_of(dtype_)), chunk, dtype_}, copies, sources,
                          Reduction::sum);
}

}  // namespace renkei::bench
