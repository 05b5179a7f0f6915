// Eight floats, one block of channels, as a value with the usual operators. The compiler makes of
// it what the target has: one AVX register, or two of SSE.
//
// No include guard of the usual kind: included once for each target that Highway compiles for.
#if defined(RENKEI_COMPUTE_VECTOR8) == defined(HWY_TARGET_TOGGLE)
#ifdef RENKEI_COMPUTE_VECTOR8
#undef RENKEI_COMPUTE_VECTOR8
#else
#define RENKEI_COMPUTE_VECTOR8
#endif

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

typedef float V8 __attribute__((vector_size(32)));
typedef int M8 __attribute__((vector_size(32)));

inline V8 load(const float* from) {
  V8 value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store(V8 value, float* to) {
  std::memcpy(to, &value, sizeof value);
}
inline V8 all(float x) {
  return V8{x, x, x, x, x, x, x, x};
}
inline V8 positive_part(V8 x) {
  return x > 0.0f ? x : all(0.0f);
}
// x where `sign` is positive, else 0: the gradient of a ReLU.
inline V8 where_positive(V8 sign, V8 x) {
  return sign > 0.0f ? x : all(0.0f);
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
