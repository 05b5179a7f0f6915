#include "shard/slice.h"

namespace renkei::shard {

int64_t Slice::run_length() const {
  const auto dim = static_cast<size_t>(layout.dim);
  int64_t length = sizes[dim] / layout.blocks / part.parts;
  for (size_t d = dim + 1; d < sizes.size(); ++d) length *= sizes[d];
  return std::max<int64_t>(length, 1);
}

}  // namespace renkei::shard
