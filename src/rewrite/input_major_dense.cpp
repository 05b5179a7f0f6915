// Dense layers whose weights lie by input, as GPT-2's Conv1D has them: aten.addmm(b, x, W) becomes
//
//   renkei.linear.input_major    x W + b
//
// with the product of other dense layers, which writes the gradient of the weights to where it is
// reduced.
#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {
namespace {

std::string why_not_input_major(const Editor& editor, const Op& op) {
  const ValueId bias = value_of(op, "self"), input = value_of(op, "mat1"),
                weight = value_of(op, "mat2");
  for (const ValueId id : {bias, input, weight})
    if (id == program::kNoValue || editor.value(id).dtype != program::DType::f32)
      return "it is not of f32";
  if (real_of(op, "alpha", 1.0) != 1.0 || real_of(op, "beta", 1.0) != 1.0) return "it is scaled";
  if (editor.value(bias).sizes.size() != 1 ||
      editor.value(bias).sizes[0] != editor.value(weight).sizes.back())
    return "what it adds is no bias";
  return "";
}

}  // namespace

void use_input_major_dense_kernels(Editor& editor, std::vector<Applied>& applied) {
  for (int place = 0; place < editor.places(); ++place) {
    if (!editor.is(place, "aten.addmm.default")) continue;
    const std::string where = editor.where(place);
    Op op = editor.op(place);
    if (const std::string reason = why_not_input_major(editor, op); !reason.empty()) {
      applied.push_back({"dense layer", where, reason});
      continue;
    }
    applied.push_back({"dense layer", where});
    op.arguments = {{"input", program::Reference{value_of(op, "mat1")}},
                    {"weight", program::Reference{value_of(op, "mat2")}},
                    {"bias", program::Reference{value_of(op, "self")}}};
    op.target = "renkei.linear.input_major";
    editor.replace(place, std::move(op));
  }
}

}  // namespace renkei::rewrite
