#pragma once

namespace renkei::dense {

enum class Precision { f32, f64 };

// Operations per second of a product of two square matrices of this order, the best of `runs` after
// one that does not count: what disturbs a run makes it slower, never faster.
double product_flops_per_second(Precision precision, int order, int threads, int runs);

// Whether this program has a BLAS; without, the function above is a usage Error.
bool have_products();

}  // namespace renkei::dense
