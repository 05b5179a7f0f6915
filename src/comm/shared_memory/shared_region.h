// Memory that all ranks of a host see. Rank i of the host owns part i; every rank may read and
// write all parts, and orders its accesses with atomics or a barrier.
#pragma once

#include <cstddef>
#include <span>

namespace renkei::comm {

class SharedRegion {
 public:
  virtual ~SharedRegion() = default;
  // Zero at first, on a page boundary, the same size for every part.
  virtual std::span<std::byte> part(int local_rank) const = 0;
  // All of its ranks together, at an orderly end: the memory is gone. The destructor communicates
  // with nobody; where it can't free the memory alone, Transport::close() does.
  virtual void close() {}
};

}  // namespace renkei::comm
