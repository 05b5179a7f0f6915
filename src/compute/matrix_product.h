// Products of matrices by oneDNN. The BLAS that comes with Torch reaches half of its rate on some
// processors with AVX-512 (119 in place of 270 GFLOP/s on a Zen 5).
#pragma once

#include <cstdint>

namespace renkei::compute {

// C = A B, with C of rows × columns. Matrices lie row by row; a transposed one is that of which the
// rows lie in memory. `a_step`, `b_step`: values from one row in memory to the next.
struct MatrixProduct {
  int64_t rows = 0, columns = 0, inner = 0;
  bool a_transposed = false, b_transposed = false;
  int64_t a_step = 0, b_step = 0;
};

// Whether oneDNN is there and made for this processor.
bool has_matrix_product();

// The values of `c` are replaced; its rows lie one after the other.
void matrix_product(const MatrixProduct& product, const float* a, const float* b, float* c);

}  // namespace renkei::compute
