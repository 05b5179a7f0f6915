#include "compute/onednn/engine.h"

namespace renkei::compute::onednn {

void multiply(const MatrixProduct& product, const float* a, const float* b, float* c) {
  const auto letter = [](bool transposed) { return transposed ? 'T' : 'N'; };
  const dnnl::status status = dnnl::sgemm(
      letter(product.a_transposed), letter(product.b_transposed), product.rows, product.columns,
      product.inner, 1, a, product.a_step, b, product.b_step, 0, c, product.columns);
  if (status != dnnl::status::success)
    throw dnnl::error(static_cast<dnnl_status_t>(status), "its arguments were refused");
}

}  // namespace renkei::compute::onednn
