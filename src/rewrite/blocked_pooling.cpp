// Pooling in blocked layout: renkei.pool for square windows; the mean over all pixels is Torch's
// own, over the two dimensions that pixels have in both layouts.
#include <algorithm>

#include "rewrite/blocked_form.h"
#include "rewrite/constants.h"

namespace renkei::rewrite {
namespace {

using program::Reference;
using program::Size;

struct Window {
  int64_t kernel, stride, padding;
  bool ceil = false, count_padding = true;  // as in compute/pooling.h

  bool is_simple() const { return !ceil && count_padding; }  // what renkei.pool.default can do
};

Op pool(const Op& op, ValueId image, Window window, bool max) {
  Op pooling{.target = window.is_simple() ? "renkei.pool.default" : "renkei.pool.general",
             .arguments = {{"input", Reference{image}},
                           {"kernel", window.kernel},
                           {"stride", window.stride},
                           {"padding", window.padding},
                           {"max", max}},
             .outputs = op.outputs,
             .module = op.module,
             .source = op.source,
             .no_grad = op.no_grad};
  if (!window.is_simple()) {
    pooling.arguments.push_back({"ceil", window.ceil});
    pooling.arguments.push_back({"count_padding", window.count_padding});
  }
  return pooling;
}

// The last window ends within the padded image, or there is a part of one more.
bool windows_fit(const Value& input, Window window) {
  return std::all_of(input.sizes.begin() + 2, input.sizes.end(), [&](const Size& size) {
    return size.is_number() &&
           (size.number() + 2 * window.padding - window.kernel) % window.stride == 0;
  });
}

bool is_square(const std::optional<Pair>& pair) {
  return pair && pair->first == pair->second;
}

BlockedForm pooling(const ImageContext& context, const Op& op, ValueId input, Window window,
                    bool max) {
  return {.images = {input},
          .gain_bytes = context.bytes(input),
          .write = [op, input, window, max](BlockedWriter& writer) {
            writer.add(pool(op, writer.blocked(input), window, max));
          }};
}

// The mean over all pixels; `keep`: as an image of one pixel.
BlockedForm global_mean(const ImageContext& context, const Op& op, ValueId input, bool keep) {
  const auto write = [op, input, keep, sizes = context.blocked_sizes(input),
                      name = context.editor.value(op.outputs[0]).name +
                             ".blocks"](BlockedWriter& writer) {
    Op mean{.target = "aten.mean.dim",
            .arguments = {{"self", Reference{writer.blocked(input)}},
                          {"dim", integers({2, 3})},
                          {"keepdim", keep}},
            .outputs = op.outputs,
            .module = op.module,
            .source = op.source,
            .no_grad = op.no_grad};
    if (keep) return writer.add(std::move(mean));
    mean.outputs = {writer.add_value({.name = name, .sizes = {sizes[0], sizes[1], sizes[4]}})};
    Op flat{.target = "aten.flatten.using_ints",
            .arguments = {{"self", Reference{mean.outputs[0]}}, {"start_dim", int64_t{1}}},
            .outputs = op.outputs,
            .module = op.module,
            .source = op.source,
            .no_grad = op.no_grad};
    writer.add(std::move(mean));
    writer.add(std::move(flat));
  };
  return {.images = {input}, .image_result = keep, .gain_bytes = 0, .write = write};
}

BlockedForm adaptive_pooling(const ImageContext& context, const Op& op, ValueId input) {
  const auto size = pair_of(op, "output_size");
  if (!size) return {.why_not = "its size is computed"};
  if (*size == Pair{1, 1}) return global_mean(context, op, input, true);
  const auto& sizes = context.editor.value(input).sizes;
  const bool fixed = sizes[2].is_number() && sizes[3].is_number();
  if (!fixed || sizes[2].number() % size->first != 0 || sizes[3].number() % size->second != 0)
    return {.why_not = "its windows differ in size"};
  const Pair window{sizes[2].number() / size->first, sizes[3].number() / size->second};
  if (!is_square(window)) return {.why_not = "its windows are not square"};
  return pooling(context, op, input, {window.first, window.first, 0}, false);
}

}  // namespace

BlockedForm blocked_pooling(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const bool max = op.target == "aten.max_pool2d.default";
  const ValueId input = value_of(op, "self");
  if (!context.is_image(input))
    return {.why_not = "its input is no image whose channels fill blocks"};
  const auto kernel = pair_of(op, "kernel_size"), padding = pair_of(op, "padding", Pair{0, 0});
  const auto stride = pair_of(op, "stride", kernel);
  if (!is_square(kernel) || !is_square(padding) || !is_square(stride))
    return {.why_not = "its windows are not square"};
  const auto ceil = boolean_of(op, "ceil_mode", false);
  const auto count_padding = boolean_of(op, "count_include_pad", true);
  if (pair_of(op, "dilation", Pair{1, 1}) != Pair{1, 1}) return {.why_not = "it is dilated"};
  if (!ceil || !count_padding || !is_absent(op, "divisor_override"))
    return {.why_not = "it has a divisor of its own"};
  Window window{kernel->first, stride->first, padding->first};
  window.ceil = *ceil && !windows_fit(context.editor.value(input), window);
  window.count_padding = max || window.padding == 0 || *count_padding;
  if (!window.is_simple() && !context.options.general_pooling)
    return {.why_not = window.ceil ? "its last windows are cut off (ceil_mode)"
                                   : "its averages leave out the padding"};
  return pooling(context, op, input, window, max);
}

BlockedForm blocked_mean(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const ValueId input = value_of(op, "self");
  if (!context.is_image(input))
    return {.why_not = "its input is no image whose channels fill blocks"};
  if (op.target == "aten.adaptive_avg_pool2d.default") return adaptive_pooling(context, op, input);
  auto dims = integers_of(op, "dim");
  const auto keep = boolean_of(op, "keepdim", false);
  if (!dims || !keep || !is_absent(op, "dtype"))
    return {.why_not = "it is no mean over all pixels"};
  for (int64_t& dim : *dims) dim = dim < 0 ? dim + 4 : dim;
  std::sort(dims->begin(), dims->end());
  if (*dims != std::vector<int64_t>{2, 3}) return {.why_not = "it is no mean over all pixels"};
  return global_mean(context, op, input, *keep);
}

}  // namespace renkei::rewrite
