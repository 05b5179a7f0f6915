#include "compute/matrix_product.h"

#include <algorithm>

#include "base/error.h"
#include "compute/onednn/loader.h"

namespace renkei::compute {

bool has_matrix_product() {
  static const bool has = [] {
    try {
      onednn::module();
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  return has;
}

void matrix_product(const MatrixProduct& product, const float* a, const float* b, float* c) {
  if (product.inner == 0) {
    std::fill_n(c, product.rows * product.columns, 0.0F);
    return;
  }
  if (product.rows > 0 && product.columns > 0) onednn::module().multiply(product, a, b, c);
}

}  // namespace renkei::compute
