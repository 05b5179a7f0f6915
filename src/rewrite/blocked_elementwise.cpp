// Operations in blocked layout that are the same in both: element by element, with an operand that
// is broadcast where it is one; channels put together; pixels made to rows. They gain nothing by
// the layout, but would cost two conversions each if they did not follow it.
#include <algorithm>

#include "rewrite/blocked_form.h"
#include "rewrite/constants.h"

namespace renkei::rewrite {
namespace {

using program::Reference;
using program::Size;

// The same operation with one operand replaced.
void set_value(Op& op, std::string_view name, ValueId value) {
  set_argument(op, name, Reference{value});
}

enum class Operand { image, number, one_channel, channels, misfit };

// What an operand is to a result of `channels`: an image; a number; one value for all channels of a
// pixel or sample; one value for each channel.
Operand kind_of(const ImageContext& context, const Op& op, std::string_view name,
                int64_t channels) {
  const ValueId id = value_of(op, name);
  if (id == program::kNoValue) return Operand::number;
  const auto& sizes = context.editor.value(id).sizes;
  if (sizes.empty() || (sizes.size() == 1 && sizes[0] == Size(1))) return Operand::number;
  if (sizes.size() == 4 && sizes[1] == Size(1)) return Operand::one_channel;
  if (context.is_image(id) && sizes[1] == Size(channels)) return Operand::image;
  const bool per_channel =
      sizes.size() == 3 && sizes[0] == Size(channels) && sizes[1] == Size(1) && sizes[2] == Size(1);
  return per_channel ? Operand::channels : Operand::misfit;
}

// A small operand in the form that is broadcast to a blocked image.
ValueId broadcast(BlockedWriter& writer, const Value& value, ValueId id, Operand kind,
                  int64_t block) {
  Value shaped{.name = value.name + ".blocked", .dtype = value.dtype};
  Op op;
  if (kind == Operand::one_channel) {
    shaped.sizes = {value.sizes[0], 1, value.sizes[2], value.sizes[3], 1};
    op = {.target = "aten.unsqueeze.default",
          .arguments = {{"self", Reference{id}}, {"dim", int64_t{-1}}}};
  } else {
    const int64_t blocks = value.sizes[0].number() / block;
    shaped.sizes = {blocks, 1, 1, block};
    op = {.target = "aten.reshape.default",
          .arguments = {{"self", Reference{id}}, {"shape", integers({blocks, 1, 1, block})}}};
  }
  op.outputs = {writer.add_value(std::move(shaped))};
  const ValueId result = op.outputs[0];
  writer.add(std::move(op));
  return result;
}

}  // namespace

BlockedForm blocked_unary(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const bool dropout = op.target == "aten.dropout.default";
  const std::string name = dropout ? "input" : "self";
  const ValueId input = value_of(op, name);
  if (!context.is_image(input))
    return {.why_not = "its input is no image whose channels fill blocks"};
  if (dropout && !context.is_pixel(input))
    return {.why_not = "its random numbers would fall on other elements"};
  return {.images = {input}, .write = [op, name, input](BlockedWriter& writer) {
            Op blocked = op;
            set_value(blocked, name, writer.blocked(input));
            writer.add(std::move(blocked));
          }};
}

BlockedForm blocked_binary(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  if (!context.is_image(op.outputs[0]))
    return {.why_not = "its result is no image whose channels fill blocks"};
  const int64_t channels = context.editor.value(op.outputs[0]).sizes[1].number();
  struct Side {
    std::string name;
    ValueId id;
    Operand kind;
    Value value;
  };
  std::vector<Side> sides;
  std::vector<ValueId> images;
  for (const char* name : {"self", "other"}) {
    const Operand kind = kind_of(context, op, name, channels);
    const ValueId id = value_of(op, name);
    if (kind == Operand::misfit) return {.why_not = "the sizes of its operands do not fit"};
    if (kind == Operand::image) images.push_back(id);
    if (kind != Operand::number) sides.push_back({name, id, kind, context.editor.value(id)});
  }
  if (images.empty()) return {.why_not = "none of its operands is an image"};
  return {.images = images,
          .write = [op, sides, block = context.block_for(channels)](BlockedWriter& writer) {
            Op blocked = op;
            for (const Side& side : sides)
              set_value(blocked, side.name,
                        side.kind == Operand::image
                            ? writer.blocked(side.id)
                            : broadcast(writer, side.value, side.id, side.kind, block));
            writer.add(std::move(blocked));
          }};
}

BlockedForm blocked_concatenation(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const auto images = values_of(op, "tensors");
  const auto dim = integer_of(op, "dim", 0);
  if (!images || images->empty() || !context.is_image(op.outputs[0]) || (dim != 1 && dim != -3))
    return {.why_not = "it does not put channels of images together"};
  for (const ValueId image : *images)
    if (!context.is_image(image) || context.block_of(image) != context.block_of(op.outputs[0]))
      return {.why_not = "an image has channels that do not fill the blocks of the result"};
  return {.images = *images, .write = [op, images = *images](BlockedWriter& writer) {
            program::List list;
            for (const ValueId image : images) list.emplace_back(Reference{writer.blocked(image)});
            Op blocked = op;
            set_argument(blocked, "tensors", std::move(list));
            set_argument(blocked, "dim", int64_t{1});
            writer.add(std::move(blocked));
          }};
}

BlockedForm blocked_flatten(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const ValueId input = value_of(op, "self");
  const auto start = integer_of(op, "start_dim", 0), end = integer_of(op, "end_dim", -1);
  if (!context.is_image(input) || !context.is_pixel(input) || start != 1 || (end != -1 && end != 3))
    return {.why_not = "rows of features are in plain layout"};
  return {.images = {input}, .image_result = false, .write = [op, input](BlockedWriter& writer) {
            Op blocked = op;
            set_value(blocked, "self", writer.blocked(input));
            set_argument(blocked, "end_dim", int64_t{-1});
            writer.add(std::move(blocked));
          }};
}

}  // namespace renkei::rewrite
