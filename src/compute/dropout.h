// Dropout by counter-based random bits (base/philox.h). Whether a value is dropped is a function of
// the key and its index, so the backward direction computes the mask again in place of reading it.
//
// The bits of value i: in its group of 64, i % 16 is the counter's place and i / 16 % 4 the word:
//
//   philox({i / 64 · 16 + i % 16, 0, 0, 0}, key)[i / 16 % 4]    (the counter's upper half in word
//   1)
//
// so that a vector of neighbours takes the same word of neighbouring counters. A value is kept
// where the upper 24 bits are at least p · 2²⁴, and is then divided by 1 - p.
#pragma once

#include "compute/rows.h"

namespace renkei::compute {

struct Dropout {
  uint64_t key = 0;
  double probability = 0;  // of being dropped: from 0 to 1
};

// y = dropout(x), and the same for gradients: x_gradient = dropout(y_gradient). y may be x.
void dropout(const Dropout& dropout, int64_t count, const float* x, float* y);

// The same for values that are not the first: those with indices from `begin` on.
void dropout_from(const Dropout& dropout, int64_t begin, int64_t count, const float* x, float* y);

// y = residual + dropout(x + bias). `bias`, for each column, and `residual` may be null; y may be
// x.
void bias_dropout_add(const Dropout& dropout, const RowShape& shape, const float* x,
                      const float* bias, const float* residual, float* y);

// x_gradient = dropout(y_gradient), and its sums for each column; the residual's gradient is
// y_gradient. `bias_gradient` may be null.
void bias_dropout_add_backward(const Dropout& dropout, const RowShape& shape,
                               const float* y_gradient, float* x_gradient, Write write,
                               float* bias_gradient);

}  // namespace renkei::compute
