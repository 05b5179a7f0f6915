#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/layer_norm.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include <cmath>

#include "compute/layer_norm.h"
#include "compute/row_sums.h"
#include "compute/scratch.h"
#include "compute/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

void NormaliseRow(int64_t columns, const float* x, const float* gamma, const float* beta,
                  float epsilon, float* y, float* mean, float* inverse_deviation) {
  Wide sums = {};
  for_vectors(columns, [&](int64_t c, int64_t count) { sums += load_some(x + c, count); });
  const auto n = static_cast<double>(columns);
  *mean = static_cast<float>(sum_of(sums) / n);
  // The row is in the cache: a second pass costs little and cancels nothing.
  const Wide center = all<Wide>(*mean);
  Wide squares = {};
  for_vectors(columns, [&](int64_t c, int64_t count) {
    const Wide d = load_some(x + c, count, *mean) - center;
    squares += d * d;
  });
  const double variance = sum_of(squares) / n;
  *inverse_deviation = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(epsilon)));
  const Wide scale = all<Wide>(*inverse_deviation);
  for_vectors(columns, [&](int64_t c, int64_t count) {
    Wide value = (load_some(x + c, count) - center) * scale;
    if (gamma) value *= load_some(gamma + c, count);
    if (beta) value += load_some(beta + c, count);
    store_some(value, y + c, count);
  });
}

// Adds the row's part to `gamma_sums` and `beta_sums`.
void BackwardRow(const LayerNormBackward& work, int64_t row, float* gamma_sums, float* beta_sums) {
  const int64_t columns = work.shape.columns;
  const float *x = work.x + row * columns, *gradient = work.y_gradient + row * columns;
  const Wide mean = all<Wide>(work.mean[row]), scale = all<Wide>(work.inverse_deviation[row]);
  const auto scaled = [&](int64_t c, int64_t count, Wide g) {
    return work.gamma ? g * load_some(work.gamma + c, count) : g;
  };
  Wide sum = {}, product = {};
  for_vectors(columns, [&](int64_t c, int64_t count) {
    const Wide g = load_some(gradient + c, count), xhat = (load_some(x + c, count) - mean) * scale;
    store_some(load_some(gamma_sums + c, count) + g * xhat, gamma_sums + c, count);
    store_some(load_some(beta_sums + c, count) + g, beta_sums + c, count);
    const Wide h = scaled(c, count, g);
    sum += h;
    product += h * xhat;
  });
  if (!work.x_gradient) return;
  const auto n = static_cast<double>(columns);
  const Wide mean_h = all<Wide>(static_cast<float>(sum_of(sum) / n));
  const Wide mean_product = all<Wide>(static_cast<float>(sum_of(product) / n));
  float* x_gradient = work.x_gradient + row * columns;
  for_vectors(columns, [&](int64_t c, int64_t count) {
    const Wide h = scaled(c, count, load_some(gradient + c, count));
    const Wide xhat = (load_some(x + c, count) - mean) * scale;
    store_some((h - mean_h - xhat * mean_product) * scale, x_gradient + c, count);
  });
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(NormaliseRow);
HWY_EXPORT(BackwardRow);

void layer_norm_forward(const RowShape& shape, const float* x, const float* gamma,
                        const float* beta, float epsilon, float* y, float* mean,
                        float* inverse_deviation) {
  const auto normalise = HWY_DYNAMIC_DISPATCH(NormaliseRow);
#pragma omp parallel for
  for (int64_t row = 0; row < shape.rows; ++row)
    normalise(shape.columns, x + row * shape.columns, gamma, beta, epsilon, y + row * shape.columns,
              mean + row, inverse_deviation + row);
}

void layer_norm_backward(const LayerNormBackward& work, Write write_gamma, float* gamma_gradient,
                         Write write_beta, float* beta_gradient) {
  const int64_t columns = work.shape.columns;
  const RowSums sums(columns, 2);
  const auto backward = HWY_DYNAMIC_DISPATCH(BackwardRow);
  for_row_parts(work.shape.rows, [&](int64_t part, int64_t first, int64_t last) {
    float *gamma_sums = sums.clear(part), *beta_sums = gamma_sums + columns;
    for (int64_t row = first; row < last; ++row) backward(work, row, gamma_sums, beta_sums);
  });
  sums.write(0, write_gamma, gamma_gradient);
  sums.write(1, write_beta, beta_gradient);
}

}  // namespace renkei::compute
#endif
