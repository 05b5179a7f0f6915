#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cross_entropy.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "compute/cross_entropy.h"
#include "compute/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

inline float largest_of(int64_t count, const float* x) {
  Wide largest = all<Wide>(-std::numeric_limits<float>::infinity());
  for_vectors(count, [&](int64_t c, int64_t part) {
    const Wide values = load_some(x + c, part, x[0]);
    largest = (values > largest) | (values != values) ? values : largest;
  });
  float result = largest[0];
  for (int i = 1; i < kWide; ++i)
    if (largest[i] > result || largest[i] != largest[i]) result = largest[i];
  return result;
}

float LogSumOfRow(int64_t columns, const float* x) {
  constexpr int64_t kPiece = 2048;  // read twice, from the first cache
  double sum = 0;                   // of exp(x - largest)
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t first = 0; first < columns; first += kPiece) {
    const int64_t count = std::min(kPiece, columns - first);
    const float here = largest_of(count, x + first);
    if (here != here || here == std::numeric_limits<float>::infinity())
      return std::numeric_limits<float>::quiet_NaN();
    if (here == -std::numeric_limits<float>::infinity()) continue;  // masked logits
    if (here > largest) {
      sum *= std::exp(static_cast<double>(largest) - static_cast<double>(here));
      largest = here;
    }
    Wide sums = {};
    for_vectors(count, [&](int64_t c, int64_t part) {
      const Wide values = load_some(x + first + c, part, -std::numeric_limits<float>::infinity());
      sums += exponential(values - largest);
    });
    sum += sum_of(sums);
  }
  return static_cast<float>(static_cast<double>(largest) + std::log(sum));
}

// gradient = factor · exp(x - log_sum)
void ProbabilitiesOfRow(int64_t columns, const float* x, float log_sum, float factor,
                        float* gradient) {
  for_vectors(columns, [&](int64_t c, int64_t count) {
    store_some(exponential(load_some(x + c, count) - log_sum) * factor, gradient + c, count);
  });
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(LogSumOfRow);
HWY_EXPORT(ProbabilitiesOfRow);

void check_targets(const RowShape& shape, const int64_t* targets, int64_t ignored) {
  for (int64_t row = 0; row < shape.rows; ++row)
    if (targets[row] != ignored && (targets[row] < 0 || targets[row] >= shape.columns))
      throw Error(ErrorCode::data,
                  fmt::format("The target {} of row {} is not one of the {} classes.", targets[row],
                              row, shape.columns),
                  "check that the labels of the data are those of the network's last layer");
}

void cross_entropy_forward(const RowShape& shape, const float* logits, const int64_t* targets,
                           float* loss, float* log_sum, int64_t ignored) {
  check_targets(shape, targets, ignored);
  const auto log_sum_of = HWY_DYNAMIC_DISPATCH(LogSumOfRow);
#pragma omp parallel for
  for (int64_t row = 0; row < shape.rows; ++row) {
    const float* x = logits + row * shape.columns;
    const bool counts = targets[row] != ignored;
    log_sum[row] = counts ? log_sum_of(shape.columns, x) : 0;
    loss[row] = counts ? log_sum[row] - x[targets[row]] : 0;
  }
}

void cross_entropy_backward(const RowShape& shape, const float* logits, const int64_t* targets,
                            const float* log_sum, const float* loss_gradient, float* gradient,
                            int64_t ignored) {
  const auto probabilities = HWY_DYNAMIC_DISPATCH(ProbabilitiesOfRow);
#pragma omp parallel for
  for (int64_t row = 0; row < shape.rows; ++row) {
    float* to = gradient + row * shape.columns;
    if (targets[row] == ignored) {
      std::fill_n(to, shape.columns, 0.0f);
      continue;
    }
    probabilities(shape.columns, logits + row * shape.columns, log_sum[row], loss_gradient[row],
                  to);
    to[targets[row]] -= loss_gradient[row];
  }
}

}  // namespace renkei::compute
#endif
