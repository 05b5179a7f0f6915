// A convolution in blocked layout: renkei.conv. Torch's own takes and gives plain images and
// rearranges them around each of its three products (result, gradients of input and weights); a
// network that stays in blocked layout does so at its ends only. Pictures, whose 3 channels fill no
// block, are taken plain; such an input gets no gradient.
#include <fmt/core.h>

#include "rewrite/blocked_form.h"
#include "rewrite/constants.h"

namespace renkei::rewrite {
namespace {

using program::Reference;

struct Geometry {
  int64_t out_channels, in_channels, groups;
  Pair stride, padding, dilation;
  int64_t block;  // of the result

  // What renkei.conv.default can do.
  bool is_simple() const {
    return groups == 1 && dilation == Pair{1, 1} && stride.first == stride.second && block == 8;
  }
};

std::optional<Pair> padding_of(const Op& op, Pair kernel, Pair stride, Pair dilation) {
  const auto* argument = find_argument(op, "padding");
  const auto* word = argument ? std::get_if<std::string>(argument) : nullptr;
  if (!word) return pair_of(op, "padding", Pair{0, 0});
  if (*word == "valid") return Pair{0, 0};
  const Pair around{dilation.first * (kernel.first - 1), dilation.second * (kernel.second - 1)};
  const bool centred = around.first % 2 == 0 && around.second % 2 == 0 && stride == Pair{1, 1};
  if (*word == "same" && centred) return Pair{around.first / 2, around.second / 2};
  return {};
}

// The geometry, or why the kernels can't do it.
std::string read_geometry(const ImageContext& context, const Op& op, Geometry& geometry) {
  const ValueId weight = value_of(op, "weight");
  if (weight == program::kNoValue) return "it has no weights";
  const auto& sizes = context.editor.value(weight).sizes;
  if (sizes.size() != 4) return "its weights are not those of images";
  for (const auto& size : sizes)
    if (!size.is_number()) return "the sizes of its weights are not fixed";
  const auto stride = pair_of(op, "stride", Pair{1, 1});
  const auto dilation = pair_of(op, "dilation", Pair{1, 1});
  const auto groups = integer_of(op, "groups", 1);
  if (!stride || !dilation || !groups) return "its stride, dilation or groups are computed";
  const auto padding = padding_of(op, {sizes[2].number(), sizes[3].number()}, *stride, *dilation);
  if (!padding) return "its padding differs from side to side";
  geometry = {.out_channels = sizes[0].number(),
              .in_channels = sizes[1].number() * *groups,
              .groups = *groups,
              .stride = *stride,
              .padding = *padding,
              .dilation = *dilation,
              .block = context.block_for(sizes[0].number())};
  if (geometry.is_simple() || geometry.block == 1 || context.options.general_convolutions)
    return "";
  if (*groups != 1) return fmt::format("it has {} groups", *groups);
  if (*dilation != Pair{1, 1}) return "it is dilated";
  return stride->first != stride->second ? "its strides differ" : "its blocks are not of 8";
}

Op convolution(const Op& op, ValueId input, const Geometry& geometry) {
  Op conv{.target = geometry.is_simple() ? "renkei.conv.default" : "renkei.conv.general",
          .arguments = {{"input", Reference{input}},
                        {"weight", Reference{value_of(op, "weight")}},
                        {"bias", optional_value(value_of(op, "bias"))}},
          .outputs = op.outputs,
          .module = op.module,
          .source = op.source,
          .no_grad = op.no_grad};
  const auto [stride, padding, dilation] =
      std::tuple(geometry.stride, geometry.padding, geometry.dilation);
  if (geometry.is_simple())
    conv.arguments.insert(conv.arguments.end(), {{"stride", stride.first},
                                                 {"padding_height", padding.first},
                                                 {"padding_width", padding.second}});
  else
    conv.arguments.insert(conv.arguments.end(),
                          {{"stride", integers({stride.first, stride.second})},
                           {"padding", integers({padding.first, padding.second})},
                           {"dilation", integers({dilation.first, dilation.second})},
                           {"groups", geometry.groups},
                           {"block", geometry.block}});
  conv.arguments.push_back({"relu", false});
  return conv;
}

}  // namespace

BlockedForm blocked_convolution(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const ValueId input = value_of(op, "input"), output = op.outputs[0];
  Geometry geometry{};
  if (std::string why = read_geometry(context, op, geometry); !why.empty()) return {.why_not = why};
  if (geometry.block == 1)
    return {.why_not =
                fmt::format("its {} output channels fill no blocks of 8", geometry.out_channels)};
  const bool plain_input = context.block_for(geometry.in_channels) == 1;
  if (plain_input && context.editor.needs_gradient(input))
    return {.why_not =
                fmt::format("its {} input channels, which need a gradient, fill no blocks of 8",
                            geometry.in_channels)};
  if (!plain_input && !context.is_image(input)) return {.why_not = "its input is no image of f32"};
  if (plain_input &&
      (geometry.groups != 1 || context.editor.value(input).dtype != program::DType::f32))
    return {.why_not = "its input is not of f32, or in groups that fill no blocks"};
  const double passes = context.options.training ? 3 : 1;  // rearranged by Torch, each way
  return {.images = plain_input ? std::vector<ValueId>{} : std::vector{input},
          .gain_bytes = passes * (context.bytes(input) + context.bytes(output)),
          .write = [op, geometry, input, plain_input](BlockedWriter& writer) {
            writer.add(convolution(op, plain_input ? input : writer.blocked(input), geometry));
          }};
}

}  // namespace renkei::rewrite
