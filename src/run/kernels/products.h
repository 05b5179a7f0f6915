// Products of f32 matrices, by oneDNN where it is there (compute/matrix_product.h), else by Torch.
#pragma once

#include "compute/matrix_product.h"
#include "run/kernels/common.h"

namespace renkei::run::kernels {

// How a matrix lies in memory; nothing where neither its rows nor its columns are dense.
struct Lie {
  bool transposed;
  int64_t step;
};
inline std::optional<Lie> lie_of(const Tensor& matrix) {
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  if (matrix.stride(1) == 1 && matrix.stride(0) >= columns) return Lie{false, matrix.stride(0)};
  if (matrix.stride(0) == 1 && matrix.stride(1) >= rows) return Lie{true, matrix.stride(1)};
  return {};
}

// C = A B; either may be a transposed view. `to` is contiguous.
inline void multiply_into(const ExecutionContext* context, const Tensor& a, const Tensor& b,
                          Tensor to) {
  const std::optional<Lie> of_a = lie_of(a), of_b = lie_of(b);
  if ((context && !context->products) || !of_a || !of_b || !compute::has_matrix_product()) {
    torch::mm_out(to, a, b);
    return;
  }
  compute::matrix_product({.rows = a.size(0),
                           .columns = b.size(1),
                           .inner = a.size(1),
                           .a_transposed = of_a->transposed,
                           .b_transposed = of_b->transposed,
                           .a_step = of_a->step,
                           .b_step = of_b->step},
                          data(a), data(b), place(to));
}

inline Tensor multiply(const ExecutionContext* context, const Tensor& a, const Tensor& b) {
  Tensor product = torch::empty({a.size(0), b.size(1)});
  multiply_into(context, a, b, product);
  return product;
}

}  // namespace renkei::run::kernels
