#include "dense/product.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "dense/blas.h"

namespace renkei::dense {
namespace {

void multiply(const int n, const double* a, const double* b, double* c) {
  const double one = 1, zero = 0;
  dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
}
void multiply(const int n, const float* a, const float* b, float* c) {
  const float one = 1, zero = 0;
  sgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
}

template <typename Value>
double best_flops_per_second(int order, int runs) {
  const auto count = static_cast<size_t>(order) * static_cast<size_t>(order);
  const std::vector<Value> a(count, Value{0.5}), b(count, Value{0.25});
  std::vector<Value> c(count);
  multiply(order, a.data(), b.data(), c.data());
  double best_seconds = 1e300;
  for (int run = 0; run < runs; ++run) {
    const double begin = now_seconds();
    multiply(order, a.data(), b.data(), c.data());
    best_seconds = std::min(best_seconds, now_seconds() - begin);
  }
  return 2.0 * order * order * order / best_seconds;
}

template <typename Value>
double flops_per_second_over(int order, double seconds) {
  const auto count = static_cast<size_t>(order) * static_cast<size_t>(order);
  const std::vector<Value> a(count, Value{0.5}), b(count, Value{0.25});
  std::vector<Value> c(count);
  multiply(order, a.data(), b.data(), c.data());
  const double begin = now_seconds();
  int64_t products = 0;
  do multiply(order, a.data(), b.data(), c.data()), ++products;
  while (now_seconds() - begin < seconds);
  return 2.0 * order * order * order * static_cast<double>(products) / (now_seconds() - begin);
}

}  // namespace

bool have_products() {
  return true;
}

double product_flops_per_second(Precision precision, int order, int threads, int runs) {
  openblas_set_num_threads(threads);
  return precision == Precision::f64 ? best_flops_per_second<double>(order, runs)
                                     : best_flops_per_second<float>(order, runs);
}

double sustained_flops_per_second(Precision precision, int order, int threads, double seconds) {
  openblas_set_num_threads(threads);
  return precision == Precision::f64 ? flops_per_second_over<double>(order, seconds)
                                     : flops_per_second_over<float>(order, seconds);
}

}  // namespace renkei::dense
