#pragma once

namespace renkei::dense {

enum class Precision { f32, f64 };

// Operations per second of a product of two square matrices of this order, the best of `runs` after
// one that does not count: what disturbs a run makes it slower, never faster.
double product_flops_per_second(Precision precision, int order, int threads, int runs);

// The rate over at least this time, disturbances included: what a rank gets that has only a part of
// a core is the rate over a while, however fast single products are.
double sustained_flops_per_second(Precision precision, int order, int threads, double seconds);

// Whether this program has a BLAS; without, the functions above are usage Errors.
bool have_products();

}  // namespace renkei::dense
