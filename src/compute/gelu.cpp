#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/gelu.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include "compute/gelu.h"
#include "compute/row_sums.h"
#include "compute/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

struct Share {
  Wide phi, slope;  // Φ(v), Φ'(v)
};

// 1 - Φ(|v|) = t p(t) exp(-v²/2) / 2 with t = 1 / (1 + 0.3275911 |v| / √2), to 1e-7: Abramowitz and
// Stegun, 7.1.26. Taken for the side on which it is small, so that nothing cancels there.
inline Share share_by_erf(Wide v) {
  const Wide density = exponential(v * v * -0.5f);
  const Wide size = v < 0.0f ? -v : v;
  const Wide t = 1.0f / (1.0f + size * 0.23164191f);
  const Wide p = (((t * 1.061405429f - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t +
                 0.254829592f;
  const Wide tail = 0.5f * t * p * density;
  return {v < 0.0f ? tail : 1.0f - tail, density * 0.39894228f};
}

// (1 + tanh u) / 2 = 1 / (1 + exp(-2u)) with u = √(2/π) (v + 0.044715 v³).
inline Share share_by_tanh(Wide v) {
  const Wide u2 = 1.5957691f * v * (1.0f + 0.044715f * v * v);
  const Wide phi = 1.0f / (1.0f + exponential(-u2));
  return {phi, phi * (1.0f - phi) * (1.5957691f + 0.21406456f * v * v)};
}

inline Share share(Gelu kind, Wide v) {
  return kind == Gelu::erf ? share_by_erf(v) : share_by_tanh(v);
}

inline Wide value(const float* x, const float* bias, int64_t c, int64_t count) {
  const Wide v = load_some(x + c, count);
  return bias ? v + load_some(bias + c, count) : v;
}

void GeluRow(int64_t columns, Gelu kind, const float* x, const float* bias, float* y) {
  for_vectors(columns, [&](int64_t c, int64_t count) {
    const Wide v = value(x, bias, c, count);
    store_some(v * share(kind, v).phi, y + c, count);
  });
}

// Adds the gradient to `sums`, if not null.
void GeluBackwardRow(int64_t columns, Gelu kind, const float* x, const float* bias,
                     const float* y_gradient, float* x_gradient, float* sums) {
  for_vectors(columns, [&](int64_t c, int64_t count) {
    const Wide v = value(x, bias, c, count);
    const Share s = share(kind, v);
    const Wide g = load_some(y_gradient + c, count) * (s.phi + v * s.slope);
    store_some(g, x_gradient + c, count);
    if (sums) store_some(load_some(sums + c, count) + g, sums + c, count);
  });
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(GeluRow);
HWY_EXPORT(GeluBackwardRow);

void gelu_forward(const RowShape& shape, Gelu kind, const float* x, const float* bias, float* y) {
  const auto forward = HWY_DYNAMIC_DISPATCH(GeluRow);
#pragma omp parallel for
  for (int64_t row = 0; row < shape.rows; ++row)
    forward(shape.columns, kind, x + row * shape.columns, bias, y + row * shape.columns);
}

void gelu_backward(const RowShape& shape, Gelu kind, const float* x, const float* bias,
                   const float* y_gradient, float* x_gradient, Write write, float* bias_gradient) {
  const RowSums sums(shape.columns, 1);
  const auto backward = HWY_DYNAMIC_DISPATCH(GeluBackwardRow);
  for_row_parts(shape.rows, [&](int64_t part, int64_t first, int64_t last) {
    float* part_sums = bias_gradient ? sums.clear(part) : nullptr;
    for (int64_t row = first; row < last; ++row) {
      const int64_t at = row * shape.columns;
      backward(shape.columns, kind, x + at, bias, y_gradient + at, x_gradient + at, part_sums);
    }
  });
  sums.write(0, write, bias_gradient);
}

}  // namespace renkei::compute
#endif
