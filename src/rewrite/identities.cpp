// Operations whose result is what they are given: dropout that drops nothing or is not training,
// the concatenation of one tensor, adaptive pooling to the size that an image has already. Some
// copy, all stand between operations that belong together. Their results become other names for
// their inputs, unless one of the two is changed in place.
#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {
namespace {

// What it gives back as it is; kNoValue: it does something.
ValueId passed_through(const Editor& editor, const Op& op) {
  if (op.target == "aten.dropout.default" &&
      (real_of(op, "p") == 0.0 || boolean_of(op, "train") == false))
    return value_of(op, "input");
  if (op.target == "aten.cat.default") {
    const auto tensors = values_of(op, "tensors");
    return tensors && tensors->size() == 1 ? tensors->front() : program::kNoValue;
  }
  if (op.target == "aten.adaptive_avg_pool2d.default") {
    const ValueId input = value_of(op, "self");
    const auto size = pair_of(op, "output_size");
    if (input == program::kNoValue || !size) return program::kNoValue;
    const auto& sizes = editor.value(input).sizes;
    const bool same = sizes.size() == 4 && sizes[2] == program::Size(size->first) &&
                      sizes[3] == program::Size(size->second);
    return same ? input : program::kNoValue;
  }
  return program::kNoValue;
}

}  // namespace

void remove_identities(Editor& editor, std::vector<Applied>& applied) {
  for (int place = 0; place < editor.places(); ++place) {
    const Op& op = editor.op(place);
    if (op.outputs.size() != 1 || op.outputs[0] == program::kNoValue) continue;
    const ValueId input = passed_through(editor, op), result = op.outputs[0];
    if (input == program::kNoValue || editor.is_written(input) || editor.is_written(result))
      continue;
    // An output of the program is not to be one of its inputs, or state.
    if (editor.is_output(result) && editor.producer(input) < 0) continue;
    // The gradient would flow where it did not.
    if (op.no_grad && editor.needs_gradient(input)) continue;
    applied.push_back({"operation without effect removed", editor.where(place)});
    editor.erase(place);
    editor.replace_uses(result, input);
  }
}

}  // namespace renkei::rewrite
