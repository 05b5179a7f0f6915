// The channels of a block at one pixel, 8 or 16 floats, as a value with the usual operators. The
// compiler makes of it what the target has: 16 floats are one register of AVX-512, two of AVX.
//
// No include guard of the usual kind: included once for each target that Highway compiles for.
#if defined(RENKEI_COMPUTE_VECTOR) == defined(HWY_TARGET_TOGGLE)
#ifdef RENKEI_COMPUTE_VECTOR
#undef RENKEI_COMPUTE_VECTOR
#else
#define RENKEI_COMPUTE_VECTOR
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

template <int kWidth>
struct VectorOf {
  typedef float Floats __attribute__((vector_size(4 * kWidth)));
  typedef int32_t Integers __attribute__((vector_size(4 * kWidth)));
};
template <int kWidth>
using V = typename VectorOf<kWidth>::Floats;
template <int kWidth>
using M = typename VectorOf<kWidth>::Integers;  // what comparisons of V give: -1 or 0

template <typename T>
inline T load(const float* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
inline void store(T value, float* to) {
  std::memcpy(to, &value, sizeof value);
}
template <typename T>
inline T all(float x) {
  return x - T{};
}
// A value that is not a number stays one, as in PyTorch, so that a run that breaks is seen to
// break.
template <typename T>
inline T positive_part(T x) {
  return x < 0.0f ? T{} : x;
}
// The gradient of a ReLU: 0 where the result y was, else g.
template <typename T>
inline T through_relu(T y, T g) {
  return y <= 0.0f ? T{} : g;
}

// Calls work(width) with the width of a block as a constant.
template <typename Work>
inline void with_width(int64_t block, Work work) {
  if (block == 16)
    work(std::integral_constant<int, 16>());
  else
    work(std::integral_constant<int, 8>());
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
