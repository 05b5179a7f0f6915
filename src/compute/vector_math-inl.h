// Vectors of 16 floats with the functions that transformers need, and those of a row's end.
//
// No include guard of the usual kind: included once for each target that Highway compiles for.
#if defined(RENKEI_COMPUTE_VECTOR_MATH) == defined(HWY_TARGET_TOGGLE)
#ifdef RENKEI_COMPUTE_VECTOR_MATH
#undef RENKEI_COMPUTE_VECTOR_MATH
#else
#define RENKEI_COMPUTE_VECTOR_MATH
#endif

#include "compute/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

using Wide = V<16>;
constexpr int64_t kWide = 16;

// The first `count` values, then `rest`.
inline Wide load_some(const float* from, int64_t count, float rest = 0) {
  if (count >= kWide) return load<Wide>(from);
  Wide value = all<Wide>(rest);
  std::memcpy(&value, from, static_cast<size_t>(count) * sizeof(float));
  return value;
}
inline void store_some(Wide value, float* to, int64_t count) {
  if (count >= kWide) return store(value, to);
  std::memcpy(to, &value, static_cast<size_t>(count) * sizeof(float));
}

// Calls work(first, count) for the vectors of a row; only the last may have less than 16 values.
template <typename Work>
inline void for_vectors(int64_t columns, Work work) {
  int64_t c = 0;
  for (; c + kWide <= columns; c += kWide) work(c, kWide);
  if (c < columns) work(c, columns - c);
}

inline double sum_of(Wide x) {
  double sum = 0;
  for (int i = 0; i < kWide; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

// eˣ to about 2e-7 of its value; 0 below -87. x = n ln 2 + r, and e^r by its series.
inline Wide exponential(Wide x) {
  constexpr float kRounder = 12582912.0f;  // 1.5 · 2²³: what is added to it becomes an integer
  const Wide inside = x > 88.0f ? all<Wide>(88.0f) : x < -87.0f ? all<Wide>(-87.0f) : x;
  const Wide n = (inside * 1.44269504f + kRounder) - kRounder;
  const Wide r = (inside - n * 0.693359375f) + n * 2.12194440e-4f;
  Wide sum = r * (1.0f / 5040) + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r * r + r + 1.0f;
  const M<16> exponent = (__builtin_convertvector(n, M<16>) + 127) << 23;
  Wide power;
  std::memcpy(&power, &exponent, sizeof power);
  const Wide result = sum * power;
  return x < -87.0f ? Wide{} : result;
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
