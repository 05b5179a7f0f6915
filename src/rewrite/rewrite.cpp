#include "rewrite/rewrite.h"

#include "rewrite/mixed_precision.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {

void declare_rewrite_settings(Settings& settings) {
  const auto declare_switch = [&](const char* name, const char* help) {
    settings.declare(
        {.name = name, .kind = SettingKind::boolean, .default_value = "true", .help = help});
  };
  declare_switch("compute.blocked_layout",
                 "keep images in blocks of channels from layer to layer, with fused kernels");
  declare_switch("compute.dense",
                 "compute dense layers of few samples with the weights as they lie");
}

RewriteOptions rewrite_options(const Settings& settings) {
  return {.blocked_layout = settings.boolean("compute.blocked_layout"),
          .dense = settings.boolean("compute.dense")};
}

Rewritten rewrite(const program::Program& program, const RewriteOptions& options) {
  std::vector<Applied> applied;
  Editor editor(program, options.training, options.inputs_need_gradients);
  if (options.bf16) use_bf16(editor, applied);
  const auto in_place = make_functional(editor);
  remove_identities(editor, applied);
  if (options.blocked_layout) {
    choose_layouts(editor, options, applied);
    count_batches_in_kernel(editor);
    fuse_convolution_relu(editor, applied);
    fuse_batch_norm_tail(editor, applied);
  }
  if (options.dense) use_dense_kernels(editor, applied);
  make_in_place(editor, in_place);
  return {editor.take(), std::move(applied)};
}

}  // namespace renkei::rewrite
