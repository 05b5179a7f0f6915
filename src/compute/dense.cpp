#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/dense.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include <algorithm>

#include "compute/dense.h"
#include "compute/scratch.h"
#include "compute/vector-inl.h"

// Forward sums along the weights' rows: a tile of 3 samples × 4 outputs keeps 12 sums of vectors,
// which are added up across at its end. Backward multiplies columns by rows: a tile of 6 × 16
// results keeps 12 vectors, from panels of x and the gradient in the order of their use.

#ifndef RENKEI_COMPUTE_DENSE_TILES
#define RENKEI_COMPUTE_DENSE_TILES
namespace renkei::compute {
constexpr int64_t kTileRows = 3, kTileOutputs = 4;
constexpr int64_t kPanelRows = 6, kPanelColumns = 16;
constexpr int64_t kLine = 16;  // floats of a cache line
}  // namespace renkei::compute
#endif

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

using V4 = V<4>;
using V8 = V<8>;

// The sums of the eight values of each of four vectors.
inline V4 sums_across(V8 a, V8 b, V8 c, V8 d) {
  const V8 ab = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) +
                __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  const V8 cd = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13) +
                __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
  const V8 all = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
                 __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
  return V4{all[0], all[1], all[2], all[3]} + V4{all[4], all[5], all[6], all[7]};
}

template <int kRows>
void ForwardTile(const DenseShape& shape, const float* x, const float* w, const float* bias,
                 bool relu, const float* next, int64_t next_lines, float* y) {
  const int64_t n = shape.inputs;
  V8 sums[kRows][kTileOutputs];
  for (auto& row : sums)
    for (V8& sum : row) sum = V8{};
  for (int64_t line = 0; line < next_lines; ++line) __builtin_prefetch(next + line * kLine);
  for (int64_t i = 0; i < n; i += 8) {
    V8 values[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) values[r] = load<V8>(x + r * n + i);
#pragma GCC unroll 8
    for (int o = 0; o < kTileOutputs; ++o) {
      const V8 weights = load<V8>(w + o * n + i);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][o] += values[r] * weights;
    }
  }
  V4 added;
  std::memcpy(&added, bias, sizeof added);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    V4 result = sums_across(sums[r][0], sums[r][1], sums[r][2], sums[r][3]) + added;
    if (relu) result = positive_part(result);
    std::memcpy(y + r * shape.outputs, &result, sizeof result);
  }
}

// All rows with `kTileOutputs` outputs. Meanwhile the weights of the next come nearer.
void ForwardOutputs(const DenseShape& shape, const float* x, const float* w, const float* bias,
                    bool relu, const float* next, float* y) {
  const int64_t lines = next ? kTileOutputs * shape.inputs / kLine : 0;
  const int64_t tiles = (shape.rows + kTileRows - 1) / kTileRows;
  int64_t done = 0;
  for (int64_t r = 0, tile = 1; r < shape.rows; r += kTileRows, ++tile) {
    const float* from = next + done * kLine;
    const int64_t count = lines * tile / tiles - done;
    done += count;
    const float* in = x + r * shape.inputs;
    float* out = y + r * shape.outputs;
    switch (shape.rows - r) {
      case 1:
        ForwardTile<1>(shape, in, w, bias, relu, from, count, out);
        break;
      case 2:
        ForwardTile<2>(shape, in, w, bias, relu, from, count, out);
        break;
      default:
        ForwardTile<3>(shape, in, w, bias, relu, from, count, out);
    }
  }
}

// c[0..6)[0..16) = the sum over k of a[k][0..6) × b[k][0..16); the first `rows` of c are written.
void Product(int64_t k, const float* a, const float* b, float* c, int64_t stride, int64_t rows,
             bool add) {
  V8 sums[kPanelRows][2];
  for (auto& row : sums) row[0] = row[1] = V8{};
  // What will be written after the next.
  for (int64_t r = 0; r < rows; ++r) __builtin_prefetch(c + r * stride + 2 * kPanelColumns, 1);
  for (int64_t step = 0; step < k; ++step) {
    const V8 left = load<V8>(b), right = load<V8>(b + 8);
#pragma GCC unroll 8
    for (int r = 0; r < kPanelRows; ++r) {
      const V8 value = all<V8>(a[r]);
      sums[r][0] += value * left;
      sums[r][1] += value * right;
    }
    a += kPanelRows;
    b += kPanelColumns;
  }
  for (int64_t r = 0; r < rows; ++r, c += stride) {
    store(add ? load<V8>(c) + sums[r][0] : sums[r][0], c);
    store(add ? load<V8>(c + 8) + sums[r][1] : sums[r][1], c + 8);
  }
}

// Panels of 16 columns of `from`, which has k rows: to[panel][k][16].
void PackColumns(int64_t k, const float* from, int64_t columns, float* to) {
  for (int64_t i = 0; i < k; ++i, to += kPanelColumns) {
    float* panel = to;
    for (int64_t c = 0; c < columns; c += kPanelColumns, from += kPanelColumns) {
      store(load<V8>(from), panel);
      store(load<V8>(from + 8), panel + 8);
      panel += k * kPanelColumns;
    }
  }
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(ForwardOutputs);
HWY_EXPORT(Product);
HWY_EXPORT(PackColumns);

namespace {

// to[k][6]: six columns of `from`, which has k rows of `stride`; 0 for those beyond `columns`.
void pack_six(int64_t k, const float* from, int64_t stride, int64_t columns, float* to) {
  for (int64_t i = 0; i < k; ++i, from += stride, to += kPanelRows)
    for (int64_t c = 0; c < kPanelRows; ++c) to[c] = c < columns ? from[c] : 0;
}

}  // namespace

void dense_forward(const DenseShape& shape, const float* x, const float* w, const float* bias,
                   bool relu, float* y) {
  const int64_t whole = shape.outputs / kTileOutputs * kTileOutputs;
  const int64_t tile = kTileOutputs * shape.inputs;
#pragma omp parallel for
  for (int64_t o = 0; o < whole; o += kTileOutputs) HWY_DYNAMIC_DISPATCH(ForwardOutputs)
  (shape, x, w + o * shape.inputs, bias + o, relu,
   o + 2 * kTileOutputs <= whole ? w + o * shape.inputs + tile : nullptr, y + o);
  for (int64_t o = whole; o < shape.outputs; ++o)
    for (int64_t r = 0; r < shape.rows; ++r) {
      double sum = bias[o];
      for (int64_t i = 0; i < shape.inputs; ++i)
        sum += double{x[r * shape.inputs + i]} * w[o * shape.inputs + i];
      y[r * shape.outputs + o] = static_cast<float>(relu && sum < 0 ? 0 : sum);
    }
}

void dense_backward_weights(const DenseShape& shape, const float* x, const float* y_gradient,
                            Write write, float* w_gradient) {
  const int64_t k = shape.rows, columns = shape.inputs / kPanelColumns;
  const auto multiply = HWY_DYNAMIC_DISPATCH(Product);
  float* b = scratch(static_cast<size_t>(k * shape.inputs), 0);
  HWY_DYNAMIC_DISPATCH(PackColumns)(k, x, shape.inputs, b);
#pragma omp parallel for
  for (int64_t o = 0; o < shape.outputs; o += kPanelRows) {
    const int64_t rows = std::min(kPanelRows, shape.outputs - o);
    float* a = scratch(static_cast<size_t>(k * kPanelRows), 1);
    pack_six(k, y_gradient + o, shape.outputs, rows, a);
    for (int64_t c = 0; c < columns; ++c)
      multiply(k, a, b + c * k * kPanelColumns, w_gradient + o * shape.inputs + c * kPanelColumns,
               shape.inputs, rows, write == Write::add);
  }
}

}  // namespace renkei::compute
#endif
