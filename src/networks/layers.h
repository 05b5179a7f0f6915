// Layers: operations with their parameters, named as PyTorch's modules name them ("weight", "bias")
// below the name of the layer, and how these start.
#pragma once

#include <optional>
#include <string_view>

#include "program/builder.h"

namespace renkei::networks {

using program::Builder;
using program::Initial;
using program::ValueId;

Initial constant(double value);
Initial normal(double deviation);
Initial truncated_normal(double deviation);  // cut off at ±2, not at 2 deviations
Initial uniform_by_inputs(int64_t inputs);   // what PyTorch gives Linear and Conv2d: ±1/√inputs

enum class Start {
  pytorch,           // as the modules start by themselves
  he,                // normal, scaled to the outgoing connections; biases 0 (He et al. 2015)
  truncated_normal,  // with deviation; biases as in PyTorch
  normal,            // with deviation; biases 0
};
struct Beginning {
  Start start = Start::pytorch;
  double deviation = 0;
};

struct Convolution {
  int64_t out;
  Builder::Pair kernel;
  Builder::Pair stride = 1;
  Builder::Pair padding = 0;
  bool bias = true;
  Beginning beginning = {};
};
ValueId conv2d(Builder& builder, ValueId input, std::string_view name, const Convolution& options);

// Counts its batches, as PyTorch's module does.
ValueId batch_norm(Builder& builder, ValueId input, std::string_view name, double eps = 1e-5);

struct Dense {
  int64_t out;
  bool bias = true;
  Beginning beginning = {};
};
ValueId linear(Builder& builder, ValueId input, std::string_view name, const Dense& options);

ValueId layer_norm(Builder& builder, ValueId input, std::string_view name);

}  // namespace renkei::networks
