#include "rewrite/rewrite.h"

#include <string>

#include "compute/blocked.h"
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
  settings.declare({.name = "compute.block",
                    .kind = SettingKind::choice,
                    .default_value = "auto",
                    .help = "channels in a block; default 16 on processors with AVX-512, else 8",
                    .choices = {"auto", "8", "16"}});
  declare_switch(
      "compute.dense",
      "compute dense layers with their activation as one operation, those of few samples "
      "with the weights as they lie");
  declare_switch("compute.residuals",
                 "add the residual, after a dropout, as part of the dense layer before it");
  declare_switch("compute.gelu", "compute GELU as part of the dense layer before it");
  declare_switch("compute.layer_norm", "normalise layers by kernels of Renkei");
  declare_switch("compute.dropout", "draw the masks of dropout again in backward, not store them");
  declare_switch("compute.cross_entropy", "compute cross entropy without storing probabilities");
  settings.declare({.name = "train.precision",
                    .kind = SettingKind::choice,
                    .default_value = "fp32",
                    .help = "in what products of matrices and convolutions are computed; bf16: as "
                            "torch.autocast, parameters and their gradients stay fp32",
                    .choices = {"fp32", "bf16"},
                    .flag = "--precision"});
  settings.declare({.name = "compute.emulate_bf16",
                    .kind = SettingKind::boolean,
                    .default_value = "false",
                    .help = "round to bf16 also where the processor has no instructions for it: "
                            "slow, for tests"});
  declare_switch("compute.embedding",
                 "add gradients of embeddings to the rows that were looked up");
}

RewriteOptions rewrite_options(const Settings& settings) {
  return {.blocked_layout = settings.boolean("compute.blocked_layout"),
          .dense = settings.boolean("compute.dense"),
          .block = settings.is_auto("compute.block") ? static_cast<int>(compute::preferred_block())
                                                     : std::stoi(settings.text("compute.block")),
          .general_pooling = true,
          .gelu = settings.boolean("compute.gelu"),
          .residuals = settings.boolean("compute.residuals"),
          .layer_norm = settings.boolean("compute.layer_norm"),
          .dropout = settings.boolean("compute.dropout"),
          .cross_entropy = settings.boolean("compute.cross_entropy"),
          .embedding = settings.boolean("compute.embedding"),
          .bf16 = settings.text("train.precision") == "bf16" &&
                  (compute::has_bf16_instructions() || settings.boolean("compute.emulate_bf16"))};
}

Rewritten rewrite(const program::Program& program, const RewriteOptions& options) {
  std::vector<Applied> applied;
  Editor editor(program, options.training, options.inputs_need_gradients);
  if (options.bf16) use_bf16(editor, applied);
  const auto in_place = make_functional(editor);
  remove_identities(editor, applied);
  if (options.bf16) keep_channels_last(editor, applied);
  if (options.blocked_layout) {
    choose_layouts(editor, options, applied);
    count_batches_in_kernel(editor);
    fuse_convolution_relu(editor, applied);
    fuse_batch_norm_tail(editor, applied);
  }
  find_composed_gelu(editor, applied);
  if (options.dense) {
    use_dense_kernels(editor, options, applied);
    use_input_major_dense_kernels(editor, applied);
  }
  use_row_kernels(editor, options, applied);
  make_in_place(editor, in_place);
  return {editor.take(), std::move(applied)};
}

}  // namespace renkei::rewrite
