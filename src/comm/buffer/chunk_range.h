#pragma once

#include <algorithm>
#include <cstddef>

namespace renkei::comm {

struct Range {
  size_t begin;
  size_t end;
  size_t size() const { return end - begin; }
};

// Which elements of a buffer of `count` belong to rank r when it is cut into `ranks` chunks. The
// first count % ranks chunks have one element more, so chunk 0 is never smaller than another, and
// chunks are empty when there are more ranks than elements.
constexpr Range chunk_range(size_t count, int ranks, int r) {
  const size_t n = static_cast<size_t>(ranks), index = static_cast<size_t>(r);
  const size_t quotient = count / n, remainder = count % n;
  const size_t begin = index * quotient + std::min(index, remainder);
  return {begin, begin + quotient + (index < remainder ? 1 : 0)};
}

}  // namespace renkei::comm
