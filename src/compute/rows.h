// Matrices in plain layout, as the layers of transformers have them: a row is a token.
#pragma once

#include <cstdint>

#include "compute/convolution.h"  // Write

namespace renkei::compute {

struct RowShape {
  int64_t rows = 0, columns = 0;

  int64_t count() const { return rows * columns; }
};

}  // namespace renkei::compute
