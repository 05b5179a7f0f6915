#include "rewrite/blocked_form.h"

#include <map>

namespace renkei::rewrite {

bool ImageContext::is_image(ValueId id) const {
  if (id == program::kNoValue) return false;
  const Value& value = editor.value(id);
  return value.kind == program::ValueKind::tensor && value.dtype == program::DType::f32 &&
         value.sizes.size() == 4 && value.sizes[1].is_number() &&
         block_for(value.sizes[1].number()) > 1;
}

bool ImageContext::is_pixel(ValueId id) const {
  const auto& sizes = editor.value(id).sizes;
  return sizes.size() == 4 && sizes[2] == program::Size(1) && sizes[3] == program::Size(1);
}

int64_t ImageContext::block_for(int64_t channels) const {
  constexpr int64_t kSmall = 8;
  if (channels <= 0) return 1;
  if (channels % options.block == 0) return options.block;
  return channels % kSmall == 0 ? kSmall : 1;
}

int64_t ImageContext::block_of(ValueId image) const {
  return block_for(editor.value(image).sizes[1].number());
}

double ImageContext::bytes(ValueId id) const {
  return static_cast<double>(bytes_of(editor.value(id), symbols));
}

std::vector<program::Size> ImageContext::blocked_sizes(ValueId id) const {
  const auto& sizes = editor.value(id).sizes;
  const int64_t block = block_of(id);
  return {sizes[0], sizes[1].number() / block, sizes[2], sizes[3], block};
}

namespace {

using Form = BlockedForm (*)(const ImageContext&, int);

const std::map<std::string_view, Form>& forms() {
  static const std::map<std::string_view, Form> table{
      {"aten.conv2d.default", blocked_convolution},
      {"aten.conv2d.padding", blocked_convolution},
      {"aten.batch_norm.default", blocked_batch_norm},
      {"aten.max_pool2d.default", blocked_pooling},
      {"aten.avg_pool2d.default", blocked_pooling},
      {"aten.adaptive_avg_pool2d.default", blocked_mean},
      {"aten.mean.dim", blocked_mean},
      {"aten.cat.default", blocked_concatenation},
      {"aten.flatten.using_ints", blocked_flatten},
      {"aten.add.Tensor", blocked_binary},
      {"aten.sub.Tensor", blocked_binary},
      {"aten.mul.Tensor", blocked_binary},
      {"aten.div.Tensor", blocked_binary},
      {"aten.relu.default", blocked_unary},
      {"aten.relu6.default", blocked_unary},
      {"aten.hardtanh.default", blocked_unary},
      {"aten.leaky_relu.default", blocked_unary},
      {"aten.elu.default", blocked_unary},
      {"aten.silu.default", blocked_unary},
      {"aten.mish.default", blocked_unary},
      {"aten.gelu.default", blocked_unary},
      {"aten.sigmoid.default", blocked_unary},
      {"aten.tanh.default", blocked_unary},
      {"aten.hardswish.default", blocked_unary},
      {"aten.hardsigmoid.default", blocked_unary},
      {"aten.dropout.default", blocked_unary},
  };
  return table;
}

}  // namespace

std::optional<BlockedForm> blocked_form(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const auto found = forms().find(op.target);
  if (found == forms().end() || op.outputs.size() != 1 || op.outputs[0] == program::kNoValue)
    return {};
  BlockedForm form = found->second(context, place);
  if (!form.why_not.empty()) return form;
  // A copy in another layout would not see what is written later.
  for (const ValueId image : form.images)
    if (context.editor.is_written(image))
      return BlockedForm{.why_not = "an image that it reads is changed in place"};
  if (context.editor.is_written(op.outputs[0]))
    return BlockedForm{.why_not = "its result is changed in place"};
  if (form.image_result && !context.is_image(op.outputs[0]))
    return BlockedForm{.why_not = "its result is no image whose channels fill blocks"};
  return form;
}

}  // namespace renkei::rewrite
