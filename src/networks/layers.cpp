#include "networks/layers.h"

#include <cmath>

namespace renkei::networks {
namespace {

using program::DType;

struct Connections {
  int64_t in, out;  // of one output, of one input
};

Initial weight_start(const Beginning& beginning, const Connections& connections) {
  switch (beginning.start) {
    case Start::pytorch:
      break;
    case Start::he:
      return normal(std::sqrt(2 / static_cast<double>(connections.out)));
    case Start::truncated_normal:
      return truncated_normal(beginning.deviation);
    case Start::normal:
      return normal(beginning.deviation);
  }
  return uniform_by_inputs(connections.in);
}

Initial bias_start(const Beginning& beginning, const Connections& connections) {
  const bool zero = beginning.start == Start::he || beginning.start == Start::normal;
  return zero ? constant(0) : uniform_by_inputs(connections.in);
}

}  // namespace

Initial constant(double value) {
  return {.kind = Initial::Kind::constant, .a = value};
}

Initial normal(double deviation) {
  return {.kind = Initial::Kind::normal, .b = deviation};
}

Initial truncated_normal(double deviation) {
  return {.kind = Initial::Kind::truncated_normal, .b = deviation};
}

Initial uniform_by_inputs(int64_t inputs) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return {.kind = Initial::Kind::uniform, .a = -bound, .b = bound};
}

ValueId conv2d(Builder& builder, ValueId input, std::string_view name, const Convolution& options) {
  const auto layer = builder.scope(name);
  const auto [height, width] = options.kernel;
  const int64_t in = builder.size(input, 1);
  const Connections connections{in * height * width, options.out * height * width};
  const ValueId weight = builder.parameter("weight", {options.out, in, height, width},
                                           weight_start(options.beginning, connections));
  ValueId bias = program::kNoValue;
  if (options.bias)
    bias = builder.parameter("bias", {options.out}, bias_start(options.beginning, connections));
  return builder.conv2d(
      input, weight, bias,
      {.kernel = options.kernel, .stride = options.stride, .padding = options.padding});
}

ValueId batch_norm(Builder& builder, ValueId input, std::string_view name, double eps) {
  const auto layer = builder.scope(name);
  const int64_t channels = builder.size(input, 1);
  const ValueId weight = builder.parameter("weight", {channels}, constant(1));
  const ValueId bias = builder.parameter("bias", {channels}, constant(0));
  const ValueId mean = builder.buffer("running_mean", {channels}, DType::f32, constant(0));
  const ValueId variance = builder.buffer("running_var", {channels}, DType::f32, constant(1));
  const ValueId batches = builder.buffer("num_batches_tracked", {}, DType::i64, constant(0));
  builder.add_(batches, int64_t{1});
  return builder.batch_norm(input, weight, bias, {mean, variance}, eps);
}

ValueId linear(Builder& builder, ValueId input, std::string_view name, const Dense& options) {
  const auto layer = builder.scope(name);
  const Connections connections{builder.size(input, -1), options.out};
  const ValueId weight = builder.parameter("weight", {options.out, connections.in},
                                           weight_start(options.beginning, connections));
  ValueId bias = program::kNoValue;
  if (options.bias)
    bias = builder.parameter("bias", {options.out}, bias_start(options.beginning, connections));
  return builder.linear(input, weight, bias);
}

ValueId layer_norm(Builder& builder, ValueId input, std::string_view name) {
  const auto layer = builder.scope(name);
  const int64_t width = builder.size(input, -1);
  const ValueId weight = builder.parameter("weight", {width}, constant(1));
  const ValueId bias = builder.parameter("bias", {width}, constant(0));
  return builder.layer_norm(input, weight, bias);
}

}  // namespace renkei::networks
