#pragma once

#include <cstddef>

namespace renkei::graph {

// Ops, values and parameters are counted in ints, vectors in size_t.
inline size_t at(int index) {
  return static_cast<size_t>(index);
}

}  // namespace renkei::graph
