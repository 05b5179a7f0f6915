// A program becomes a faster program that means the same, on the kernels named renkei::… (the
// operators and their schemas: operators.md). Each rewrite is a file of this folder that states its
// pattern and why it pays; rewrite() does those that are switched on, in a fixed order, and says
// which of them were applied where, and why not where one might have expected it.
//
// The results are those of the unrewritten program up to the order of sums: outputs and buffers to
// 1e-5 relative, gradients to 5e-5 (tests/run/rewrite_test.cpp), without Winograd's method, which
// costs more. Random numbers are drawn by the same operations in the same order, for tensors of the
// same order of elements.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "program/program.h"

namespace renkei::rewrite {

struct RewriteOptions {
  bool blocked_layout = true;        // images stay in blocks of channels from layer to layer
  bool dense = true;                 // dense layers with their activation as one operation
  int block = 8;                     // channels in a block, where they fill it; else 8
  bool general_convolutions = true;  // with groups, dilation, strides that differ: conv.general
  bool general_pooling = false;      // with windows that are cut off: pool.general
  // Of transformers (dense.cpp, rows.cpp); off where nothing binds their kernels yet.
  bool gelu = false, residuals = false;  // as part of the dense layer before
  bool layer_norm = false, dropout = false, cross_entropy = false, embedding = false;
  bool bf16 = false;                   // mixed precision (mixed_precision.h)
  bool training = true;                // gradients are asked for
  bool inputs_need_gradients = false;  // of a part of a network, whose inputs come from other parts
};

void declare_rewrite_settings(Settings& settings);
RewriteOptions rewrite_options(const Settings& settings);

struct Applied {
  std::string rewrite;  // "batch norm with add and ReLU"
  std::string where;    // the layer: "layer1.0.bn3"; the name of the result where there is none
  std::string why_not = {};  // empty: it was applied
};

struct Rewritten {
  program::Program program;
  std::vector<Applied> applied;
};

// `program` holds: check() of program.h has been called.
Rewritten rewrite(const program::Program& program, const RewriteOptions& options);

}  // namespace renkei::rewrite
