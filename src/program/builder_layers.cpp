// The builder's operations that are layers of networks, and losses.
#include <algorithm>

#include "base/error.h"
#include "program/builder.h"

namespace renkei::program {
namespace {

List pair(const Builder::Pair& pair) {
  return {pair.height, pair.width};
}

int64_t positions(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  const int64_t room = size + 2 * padding - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

// Adds a reference, or None where there is no value and something follows it.
void add_reference(std::vector<NamedArgument>& arguments, const char* name, ValueId id,
                   bool is_last) {
  if (id != kNoValue)
    arguments.push_back({name, Reference{id}});
  else if (!is_last)
    arguments.push_back({name, None{}});
}

}  // namespace

ValueId Builder::conv2d(ValueId input, ValueId weight, ValueId bias, const Window& window,
                        std::string_view module) {
  const bool pads = window.padding != Pair(0), strides = pads || window.stride != Pair(1);
  std::vector<NamedArgument> arguments{{"input", Reference{input}}, {"weight", Reference{weight}}};
  add_reference(arguments, "bias", bias, !strides);
  if (strides) arguments.push_back({"stride", pair(window.stride)});
  if (pads) arguments.push_back({"padding", pair(window.padding)});
  return op("aten.conv2d.default", std::move(arguments), windows(input, window, size(weight, 0)),
            module);
}

Builder::Result Builder::windows(ValueId input, const Window& window, int64_t channels) const {
  const auto [kernel, stride, padding] = window;
  const int64_t height = positions(size(input, 2), kernel.height, stride.height, padding.height);
  const int64_t width = positions(size(input, 3), kernel.width, stride.width, padding.width);
  if (height < 1 || width < 1) refuse(value(input).name, "the image is smaller than the window");
  return {value(input).dtype, {sizes(input)[0], channels, height, width}};
}

ValueId Builder::pool(const char* target, ValueId input, const Window& window,
                      std::string_view module) {
  std::vector<NamedArgument> arguments{{"self", Reference{input}},
                                       {"kernel_size", pair(window.kernel)},
                                       {"stride", pair(window.stride)}};
  if (window.padding != Pair(0)) arguments.push_back({"padding", pair(window.padding)});
  return op(target, std::move(arguments), windows(input, window, size(input, 1)), module);
}

ValueId Builder::max_pool2d(ValueId input, const Window& window, std::string_view module) {
  return pool("aten.max_pool2d.default", input, window, module);
}

ValueId Builder::avg_pool2d(ValueId input, const Window& window, std::string_view module) {
  return pool("aten.avg_pool2d.default", input, window, module);
}

ValueId Builder::adaptive_avg_pool2d(ValueId input, int64_t side, std::string_view module) {
  return op("aten.adaptive_avg_pool2d.default",
            {{"self", Reference{input}}, {"output_size", pair(side)}},
            {value(input).dtype, {sizes(input)[0], sizes(input)[1], side, side}}, module);
}

ValueId Builder::batch_norm(ValueId input, ValueId weight, ValueId bias, const Statistics& running,
                            double eps, std::string_view module) {
  return like(input, "aten.batch_norm.default",
              {{"input", Reference{input}},
               {"weight", Reference{weight}},
               {"bias", Reference{bias}},
               {"running_mean", Reference{running.mean}},
               {"running_var", Reference{running.variance}},
               {"training", true},
               {"momentum", 0.1},
               {"eps", eps},
               {"cudnn_enabled", false}},
              module);
}

ValueId Builder::linear(ValueId input, ValueId weight, ValueId bias, std::string_view module) {
  if (size(input, -1) != size(weight, 1)) refuse("linear", "rows and weights differ in length");
  std::vector<Size> after = sizes(input);
  after.back() = size(weight, 0);
  std::vector<NamedArgument> arguments{{"input", Reference{input}}, {"weight", Reference{weight}}};
  add_reference(arguments, "bias", bias, true);
  return op("aten.linear.default", std::move(arguments), {value(input).dtype, std::move(after)},
            module);
}

ValueId Builder::embedding(ValueId weight, ValueId indices, std::string_view module) {
  std::vector<Size> after = sizes(indices);
  after.push_back(size(weight, 1));
  return op("aten.embedding.default",
            {{"weight", Reference{weight}}, {"indices", Reference{indices}}},
            {value(weight).dtype, std::move(after)}, module);
}

ValueId Builder::layer_norm(ValueId input, ValueId weight, ValueId bias, std::string_view module) {
  return like(input, "aten.layer_norm.default",
              {{"input", Reference{input}},
               {"normalized_shape", List{size(weight, 0)}},
               {"weight", Reference{weight}},
               {"bias", Reference{bias}},
               {"eps", 1e-5},
               {"cudnn_enable", false}},
              module);
}

ValueId Builder::relu(ValueId input, std::string_view module) {
  return like(input, "aten.relu.default", {{"self", Reference{input}}}, module);
}

ValueId Builder::relu_(ValueId input, std::string_view module) {
  return like(input, "aten.relu_.default", {{"self", Reference{input}}}, module);
}

ValueId Builder::gelu(ValueId input, std::string_view module) {
  return like(input, "aten.gelu.default", {{"self", Reference{input}}}, module);
}

ValueId Builder::dropout(ValueId input, double share, std::string_view module) {
  return like(input, "aten.dropout.default",
              {{"input", Reference{input}}, {"p", share}, {"train", true}}, module);
}

ValueId Builder::attention(ValueId query, ValueId key, ValueId value, const Attention& options) {
  std::vector<NamedArgument> arguments{
      {"query", Reference{query}}, {"key", Reference{key}}, {"value", Reference{value}}};
  if (options.dropout != 0 || options.causal) {
    arguments.push_back({"attn_mask", None{}});
    arguments.push_back({"dropout_p", options.dropout});
  }
  if (options.causal) arguments.push_back({"is_causal", true});
  return like(query, "aten.scaled_dot_product_attention.default", std::move(arguments));
}

ValueId Builder::cross_entropy_loss(ValueId scores, ValueId labels, Reduction reduction,
                                    double label_smoothing) {
  std::vector<NamedArgument> arguments{{"self", Reference{scores}},
                                       {"target", Reference{labels}},
                                       {"weight", None{}},
                                       {"reduction", static_cast<int64_t>(reduction)}};
  if (label_smoothing != 0) {
    arguments.push_back({"ignore_index", int64_t{-100}});
    arguments.push_back({"label_smoothing", label_smoothing});
  }
  return op(
      "aten.cross_entropy_loss.default", std::move(arguments),
      {value(scores).dtype, reduction == Reduction::none ? sizes(labels) : std::vector<Size>{}});
}

ValueId Builder::mse_loss(ValueId values, ValueId target, Reduction reduction) {
  return op(
      "aten.mse_loss.default",
      {{"self", Reference{values}},
       {"target", Reference{target}},
       {"reduction", static_cast<int64_t>(reduction)}},
      {value(values).dtype, reduction == Reduction::none ? sizes(values) : std::vector<Size>{}});
}

}  // namespace renkei::program
