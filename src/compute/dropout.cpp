#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/dropout.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "compute/dropout.h"
#include "compute/row_sums.h"
#include "compute/vector_math-inl.h"

#ifndef RENKEI_COMPUTE_DROPOUT_TYPES
#define RENKEI_COMPUTE_DROPOUT_TYPES
namespace renkei::compute {

constexpr int64_t kGroup = 64;  // values that sixteen counters decide on

struct DropoutRule {
  uint64_t key;
  int32_t threshold;  // of 24 bits
  float scale;
};

// What to do with values from `first`, which begins a group; columns are for the bias.
struct DropoutWork {
  int64_t columns;
  const float *x, *bias, *residual;
  float* y;
};

}  // namespace renkei::compute
#endif

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

typedef uint32_t U __attribute__((vector_size(64)));
typedef uint64_t Double __attribute__((vector_size(128)));

struct Words {
  U words[4];
};

inline U upper(Double x) {
  return __builtin_convertvector(x >> 32, U);
}

// base/philox.h for sixteen counters.
inline Words philox_of_group(uint64_t group, uint64_t key) {
  const uint64_t first = group * 16;  // the lower word does not overflow within a group
  U c0 = U{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + static_cast<uint32_t>(first);
  U c1 = U{} + static_cast<uint32_t>(first >> 32), c2 = {}, c3 = {};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Double p0 = __builtin_convertvector(c0, Double) * uint64_t{0xD2511F53};
    const Double p1 = __builtin_convertvector(c2, Double) * uint64_t{0xCD9E8D57};
    const U n0 = upper(p1) ^ c1 ^ k0, n2 = upper(p0) ^ c3 ^ k1;
    c1 = c2 * uint32_t{0xCD9E8D57};
    c3 = c0 * uint32_t{0xD2511F53};
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// The bias of values from i on, which may go on in the next row.
inline Wide bias_of(const DropoutWork& work, int64_t i, int64_t count) {
  const int64_t c = i % work.columns;
  if (c + count <= work.columns) return load_some(work.bias + c, count);
  Wide value = {};
  for (int64_t j = 0; j < count; ++j) value[j] = work.bias[(c + j) % work.columns];
  return value;
}

// One group of values, or its first `count`.
void DropGroup(const DropoutRule& rule, const DropoutWork& work, int64_t group, int64_t count) {
  const Words bits = philox_of_group(static_cast<uint64_t>(group), rule.key);
  for_vectors(count, [&](int64_t offset, int64_t part) {
    const int64_t i = group * kGroup + offset;
    Wide value = load_some(work.x + i, part);
    if (work.bias) value += bias_of(work, i, part);
    const auto drawn = (M<16>)(bits.words[offset / kWide] >> 8);
    value *= drawn >= rule.threshold ? all<Wide>(rule.scale) : Wide{};  // not a number stays one
    if (work.residual) value += load_some(work.residual + i, part);
    store_some(value, work.y + i, part);
  });
}

void AddRow(int64_t columns, const float* row, float* sums) {
  for_vectors(columns, [&](int64_t c, int64_t count) {
    store_some(load_some(sums + c, count) + load_some(row + c, count), sums + c, count);
  });
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(DropGroup);
HWY_EXPORT(AddRow);

namespace {

DropoutRule rule_of(const Dropout& dropout) {
  return {.key = dropout.key,
          .threshold = static_cast<int32_t>(std::ceil(dropout.probability * 0x1.0p24)),
          .scale = dropout.probability < 1 ? static_cast<float>(1 / (1 - dropout.probability)) : 0};
}

void drop(const Dropout& dropout, int64_t count, const DropoutWork& work) {
  const DropoutRule rule = rule_of(dropout);
  const auto drop_group = HWY_DYNAMIC_DISPATCH(DropGroup);
#pragma omp parallel for
  for (int64_t group = 0; group < (count + kGroup - 1) / kGroup; ++group)
    drop_group(rule, work, group, std::min(kGroup, count - group * kGroup));
}

}  // namespace

void dropout(const Dropout& dropout, int64_t count, const float* x, float* y) {
  drop(dropout, count, {.columns = count, .x = x, .bias = nullptr, .residual = nullptr, .y = y});
}

void dropout_from(const Dropout& dropout, int64_t begin, int64_t count, const float* x, float* y) {
  const DropoutRule rule = rule_of(dropout);
  const auto drop_group = HWY_DYNAMIC_DISPATCH(DropGroup);
  // Group 0 of a rule whose counters begin at the group: a group is computed in memory of its own,
  // because the first and the last may be cut off.
  for (int64_t done = 0; done < count;) {
    const int64_t group = (begin + done) / kGroup, skip = (begin + done) % kGroup;
    const int64_t length = std::min(kGroup - skip, count - done);
    float values[kGroup] = {};
    std::copy_n(x + done, length, values + skip);
    // Where the group's values would be if all from the first on were there.
    const auto shift = static_cast<uintptr_t>(group * kGroup) * sizeof(float);
    float* const first = reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(values) - shift);
    drop_group(rule,
               {.columns = kGroup, .x = first, .bias = nullptr, .residual = nullptr, .y = first},
               group, kGroup);
    std::copy_n(values + skip, length, y + done);
    done += length;
  }
}

void bias_dropout_add(const Dropout& dropout, const RowShape& shape, const float* x,
                      const float* bias, const float* residual, float* y) {
  drop(dropout, shape.count(),
       {.columns = shape.columns, .x = x, .bias = bias, .residual = residual, .y = y});
}

void bias_dropout_add_backward(const Dropout& dropout, const RowShape& shape,
                               const float* y_gradient, float* x_gradient, Write write,
                               float* bias_gradient) {
  compute::dropout(dropout, shape.count(), y_gradient, x_gradient);
  if (!bias_gradient) return;
  const RowSums sums(shape.columns, 1);
  const auto add_row = HWY_DYNAMIC_DISPATCH(AddRow);
  for_row_parts(shape.rows, [&](int64_t part, int64_t first, int64_t last) {
    float* part_sums = sums.clear(part);
    for (int64_t row = first; row < last; ++row)
      add_row(shape.columns, x_gradient + row * shape.columns, part_sums);
  });
  sums.write(0, write, bias_gradient);
}

}  // namespace renkei::compute
#endif
