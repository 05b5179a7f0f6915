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
  int64_t out_channels, in_channels, stride, padding_height, padding_width;
};

std::optional<Pair> padding_of(const Op& op, Pair kernel, Pair stride) {
  const auto* argument = find_argument(op, "padding");
  const auto* word = argument ? std::get_if<std::string>(argument) : nullptr;
  if (!word) return pair_of(op, "padding", Pair{0, 0});
  if (*word == "valid") return Pair{0, 0};
  const bool centred = kernel.first % 2 == 1 && kernel.second % 2 == 1 && stride == Pair{1, 1};
  if (*word == "same" && centred) return Pair{kernel.first / 2, kernel.second / 2};
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
  if (*groups != 1) return fmt::format("it has {} groups", *groups);
  if (*dilation != Pair{1, 1}) return "it is dilated";
  if (stride->first != stride->second) return "its strides differ";
  const auto padding = padding_of(op, {sizes[2].number(), sizes[3].number()}, *stride);
  if (!padding) return "its padding differs from side to side";
  geometry = {sizes[0].number(), sizes[1].number(), stride->first, padding->first, padding->second};
  return "";
}

}  // namespace

BlockedForm blocked_convolution(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const ValueId input = value_of(op, "input"), output = op.outputs[0];
  Geometry geometry{};
  if (std::string why = read_geometry(context, op, geometry); !why.empty()) return {.why_not = why};
  if (geometry.out_channels % context.options.block != 0)
    return {.why_not = fmt::format("its {} output channels fill no blocks of {}",
                                   geometry.out_channels, context.options.block)};
  const bool plain_input = geometry.in_channels % context.options.block != 0;
  if (plain_input && context.editor.needs_gradient(input))
    return {.why_not =
                fmt::format("its {} input channels, which need a gradient, fill no blocks of {}",
                            geometry.in_channels, context.options.block)};
  if (!plain_input && !context.is_image(input)) return {.why_not = "its input is no image of f32"};
  if (plain_input && context.editor.value(input).dtype != program::DType::f32)
    return {.why_not = "its input is not of f32"};
  const double passes = context.options.training ? 3 : 1;  // rearranged by Torch, each way
  return {
      .images = plain_input ? std::vector<ValueId>{} : std::vector{input},
      .gain_bytes = passes * (context.bytes(input) + context.bytes(output)),
      .write = [op, geometry, input, plain_input](BlockedWriter& writer) {
        writer.add({.target = "renkei.conv.default",
                    .arguments = {{"input", Reference{plain_input ? input : writer.blocked(input)}},
                                  {"weight", Reference{value_of(op, "weight")}},
                                  {"bias", optional_value(value_of(op, "bias"))},
                                  {"stride", geometry.stride},
                                  {"padding_height", geometry.padding_height},
                                  {"padding_width", geometry.padding_width},
                                  {"relu", false}},
                    .outputs = op.outputs,
                    .module = op.module,
                    .source = op.source,
                    .no_grad = op.no_grad});
      }};
}

}  // namespace renkei::rewrite
