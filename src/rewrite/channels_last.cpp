// Images in bf16 lie with their channels last (NHWC), which is how oneDNN's convolutions, PyTorch's
// batch normalisation and its pooling are fastest in that type. Blocks of channels are f32's alone:
// Renkei's own kernels compute in it.
//
// The input of each convolution and its weights are brought into that form, and what operations
// make of its result keeps it, until one comes that may look at how elements lie (a view, say): it
// gets a copy in the usual order. Both are `contiguous`, which gives back what has that form
// already.
#include <algorithm>
#include <map>
#include <set>

#include "program/effects.h"
#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {
namespace {

using program::DType;
using program::kNoValue;
using program::Reference;
using program::Word;

// They give what they are given in its form, and do not care what it is.
bool keeps_form(std::string_view name) {
  static const std::set<std::string_view> names{"batch_norm",
                                                "relu",
                                                "relu6",
                                                "hardtanh",
                                                "leaky_relu",
                                                "silu",
                                                "hardswish",
                                                "hardsigmoid",
                                                "sigmoid",
                                                "gelu",
                                                "elu",
                                                "tanh",
                                                "mish",
                                                "add",
                                                "mul",
                                                "sub",
                                                "div",
                                                "dropout",
                                                "max_pool2d",
                                                "avg_pool2d",
                                                "cat",
                                                "to",
                                                "add_",
                                                "mul_",
                                                "relu_",
                                                "hardtanh_",
                                                "silu_",
                                                "hardswish_",
                                                "clone",
                                                "adaptive_avg_pool2d",
                                                "upsample_bilinear2d",
                                                "upsample_nearest2d"};
  return names.contains(name);
}

class Former {
 public:
  explicit Former(Editor& editor) : editor_(editor) {
    for (size_t id = 0; id < editor.program().values.size(); ++id)
      written_.push_back(editor.is_written(static_cast<ValueId>(id)));
  }

  // Whether it is a convolution of images in bf16.
  bool add(Op op) {
    const program::Target target = program::parts_of(op.target);
    const bool aten = target.library == "aten";
    const bool convolution = aten && target.name == "conv2d" && is_image(value_of(op, "input")) &&
                             editor_.value(value_of(op, "input")).dtype == DType::bf16;
    if (convolution) {
      // Weights too: else forward and backward would each bring them into that form.
      for (const char* name : {"input", "weight"})
        program::set_argument(op, name, Reference{channels_last(value_of(op, name), op.module)});
    } else if (!aten || !keeps_form(target.name)) {
      for (auto& [name, argument] : op.arguments) in_order(argument, op.module);
    }
    const bool keeps = convolution || (aten && keeps_form(target.name) && takes_formed(op));
    for (const ValueId id : op.outputs)
      if (keeps && is_image(id)) formed_.insert(id);
    ops_.push_back(std::move(op));
    return convolution;
  }

  void finish() {
    for (size_t port = 0; port < editor_.program().outputs.size(); ++port) {
      const ValueId id = editor_.program().outputs[port].value;
      if (formed_.contains(id)) editor_.set_output(port, copied(id, "contiguous_format", ""));
    }
    editor_.set_ops(std::move(ops_));
  }

 private:
  bool is_image(ValueId id) const {
    return id != kNoValue && editor_.value(id).kind == program::ValueKind::tensor &&
           editor_.value(id).sizes.size() == 4;
  }

  bool takes_formed(const Op& op) const {
    return std::ranges::any_of(program::references(op),
                               [&](ValueId id) { return formed_.contains(id); });
  }

  ValueId channels_last(ValueId id, const std::string& module) {
    return formed_.contains(id) ? id : copied(id, "channels_last", module);
  }

  void in_order(program::Argument& argument, const std::string& module) {
    if (auto* reference = std::get_if<Reference>(&argument);
        reference && formed_.contains(reference->value))
      reference->value = copied(reference->value, "contiguous_format", module);
    if (auto* list = std::get_if<program::List>(&argument))
      for (auto& element : *list) in_order(element, module);
  }

  // The same values in another form, made once.
  ValueId copied(ValueId id, const char* form, const std::string& module) {
    const bool keep = !written_[static_cast<size_t>(id)];  // else it may change before the next use
    if (const auto found = copies_.find({id, form}); keep && found != copies_.end())
      return found->second;
    const Value& value = editor_.value(id);
    const ValueId result = editor_.add_value(
        {.name = value.name + "." + form, .dtype = value.dtype, .sizes = value.sizes});
    written_.push_back(false);
    ops_.push_back({.target = "aten.contiguous.default",
                    .arguments = {{"self", Reference{id}}, {"memory_format", Word{form}}},
                    .outputs = {result},
                    .module = module});
    if (keep) copies_[{id, form}] = result;
    return result;
  }

  Editor& editor_;
  std::vector<Op> ops_;
  std::vector<bool> written_;
  std::set<ValueId> formed_;
  std::map<std::pair<ValueId, std::string>, ValueId> copies_;
};

}  // namespace

void keep_channels_last(Editor& editor, std::vector<Applied>& applied) {
  Former former(editor);
  for (int place = 0; place < editor.places(); ++place) {
    if (editor.is_empty(place)) continue;
    const std::string where = editor.where(place);
    if (former.add(Op(editor.op(place)))) applied.push_back({"channels last", where});
  }
  former.finish();
}

}  // namespace renkei::rewrite
