// The one-dimensional transforms of Winograd's F(4, 3) (winograd.h), from `in` to `out`, whose
// values are `step` apart.
//
// No include guard of the usual kind: included once for each target that Highway compiles for.
#if defined(RENKEI_COMPUTE_WINOGRAD_TRANSFORMS) == defined(HWY_TARGET_TOGGLE)
#ifdef RENKEI_COMPUTE_WINOGRAD_TRANSFORMS
#undef RENKEI_COMPUTE_WINOGRAD_TRANSFORMS
#else
#define RENKEI_COMPUTE_WINOGRAD_TRANSFORMS
#endif

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

template <typename T>
inline void input_transform(const T* in, T* out, int step) {  // Bᵀ
  const T d0 = in[0], d1 = in[step], d2 = in[2 * step], d3 = in[3 * step], d4 = in[4 * step],
          d5 = in[5 * step];
  const T even = d4 - 4.0f * d2, odd = d3 - 4.0f * d1;
  const T even2 = d4 - d2, odd2 = 2.0f * (d3 - d1);
  out[0] = 4.0f * d0 - 5.0f * d2 + d4;
  out[step] = even + odd;
  out[2 * step] = even - odd;
  out[3 * step] = even2 + odd2;
  out[4 * step] = even2 - odd2;
  out[5 * step] = 4.0f * d1 - 5.0f * d3 + d5;
}

template <typename T>
inline void output_transform(const T* in, T* out, int in_step, int out_step) {  // Aᵀ
  const T m0 = in[0], m1 = in[in_step], m2 = in[2 * in_step], m3 = in[3 * in_step],
          m4 = in[4 * in_step], m5 = in[5 * in_step];
  const T sum = m1 + m2, difference = m1 - m2, sum2 = m3 + m4, difference2 = m3 - m4;
  out[0] = m0 + sum + sum2;
  out[out_step] = difference + 2.0f * difference2;
  out[2 * out_step] = sum + 4.0f * sum2;
  out[3 * out_step] = difference + 8.0f * difference2 + m5;
}

template <typename T>
inline void gradient_transform(const T* in, T* out, int in_step, int out_step) {  // A
  const T y0 = in[0], y1 = in[in_step], y2 = in[2 * in_step], y3 = in[3 * in_step];
  const T even = y0 + y2, odd = y1 + y3, even2 = y0 + 4.0f * y2, odd2 = 2.0f * y1 + 8.0f * y3;
  out[0] = y0;
  out[out_step] = even + odd;
  out[2 * out_step] = even - odd;
  out[3 * out_step] = even2 + odd2;
  out[4 * out_step] = even2 - odd2;
  out[5 * out_step] = y3;
}

template <typename T>
inline void filter_transform(const T* in, T* out, int in_step, int out_step) {  // G
  const T g0 = in[0], g1 = in[in_step], g2 = in[2 * in_step];
  const T sixth = (g0 + g2) * (-1.0f / 6), mixed = g0 * (1.0f / 24) + g2 * (1.0f / 6);
  const T odd = g1 * (1.0f / 6), odd2 = g1 * (1.0f / 12);
  out[0] = g0 * 0.25f;
  out[out_step] = sixth - odd;
  out[2 * out_step] = sixth + odd;
  out[3 * out_step] = mixed + odd2;
  out[4 * out_step] = mixed - odd2;
  out[5 * out_step] = g2;
}

template <typename T>
inline void filter_gradient_transform(const T* in, T* out, int in_step, int out_step) {  // Gᵀ
  const T u0 = in[0], u1 = in[in_step], u2 = in[2 * in_step], u3 = in[3 * in_step],
          u4 = in[4 * in_step], u5 = in[5 * in_step];
  const T sum = u1 + u2, difference = u2 - u1, sum2 = u3 + u4, difference2 = u3 - u4;
  out[0] = u0 * 0.25f - sum * (1.0f / 6) + sum2 * (1.0f / 24);
  out[out_step] = difference * (1.0f / 6) + difference2 * (1.0f / 12);
  out[2 * out_step] = (sum2 - sum) * (1.0f / 6) + u5;
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
