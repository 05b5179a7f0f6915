// Convolution, then a ReLU that alone reads its result: the kernel does both while the result is in
// registers, and the image is written once instead of twice, and read once less.
#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {

void fuse_convolution_relu(Editor& editor, std::vector<Applied>& applied) {
  for (int place = 0; place < editor.places(); ++place) {
    if (!editor.op(place).target.starts_with("renkei.conv.") ||
        boolean_of(editor.op(place), "relu") == true)
      continue;
    const ValueId result = editor.op(place).outputs[0];
    const int relu = editor.only_user(result);
    if (relu < 0 || !editor.is(relu, "aten.relu.default") ||
        editor.op(relu).no_grad != editor.op(place).no_grad || editor.is_written(result))
      continue;
    Op fused = editor.op(place);
    set_argument(fused, "relu", true);
    fused.outputs = editor.op(relu).outputs;
    applied.push_back({"convolution with ReLU", editor.where(place)});
    editor.erase(relu);
    editor.replace(place, std::move(fused));
  }
}

}  // namespace renkei::rewrite
