// Batch normalisation in blocked layout: renkei.batch_norm by the statistics of the batch,
// renkei.normalise by the running ones where no gradients are asked for. A block of channels is
// normalised while it is still in the cache, and what follows (batch_norm_tail.cpp) goes along.
#include "rewrite/blocked_form.h"
#include "rewrite/constants.h"

namespace renkei::rewrite {
namespace {

using program::None;
using program::Reference;

Op by_running_statistics(const Op& op, ValueId input, double epsilon) {
  return {.target = "renkei.normalise.default",
          .arguments = {{"input", Reference{input}},
                        {"gamma", Reference{value_of(op, "weight")}},
                        {"beta", Reference{value_of(op, "bias")}},
                        {"mean", Reference{value_of(op, "running_mean")}},
                        {"variance", Reference{value_of(op, "running_var")}},
                        {"residual", None{}},
                        {"epsilon", epsilon},
                        {"relu", false}},
          .outputs = op.outputs,
          .module = op.module,
          .source = op.source,
          .no_grad = op.no_grad};
}

Op by_statistics_of_batch(const Op& op, ValueId input, double momentum, double epsilon) {
  return {.target = "renkei.batch_norm.default",
          .arguments = {{"input", Reference{input}},
                        {"gamma", Reference{value_of(op, "weight")}},
                        {"beta", Reference{value_of(op, "bias")}},
                        {"running_mean", optional_value(value_of(op, "running_mean"))},
                        {"running_variance", optional_value(value_of(op, "running_var"))},
                        {"batches", None{}},
                        {"residual", None{}},
                        {"momentum", momentum},
                        {"epsilon", epsilon},
                        {"relu", false}},
          .outputs = op.outputs,
          .module = op.module,
          .source = op.source,
          .no_grad = op.no_grad};
}

}  // namespace

BlockedForm blocked_batch_norm(const ImageContext& context, int place) {
  const Op& op = context.editor.op(place);
  const ValueId input = value_of(op, "input");
  if (!context.is_image(input))
    return {.why_not = "its input is no image whose channels fill blocks"};
  if (is_absent(op, "weight") || is_absent(op, "bias"))
    return {.why_not = "it has no weight or no bias"};
  const auto training = boolean_of(op, "training");
  const auto momentum = real_of(op, "momentum"), epsilon = real_of(op, "eps");
  if (!training || !momentum || !epsilon) return {.why_not = "its constants are computed"};
  const bool running = !is_absent(op, "running_mean") && !is_absent(op, "running_var");
  if (!*training && !running) return {.why_not = "it has no running statistics"};
  if (!*training && context.editor.needs_gradient(op.outputs[0]))
    return {.why_not = "it needs gradients through running statistics"};
  return {.images = {input},
          .gain_bytes = 2 * context.bytes(input),
          .write = [op, input, training = *training, momentum = *momentum,
                    epsilon = *epsilon](BlockedWriter& writer) {
            const ValueId image = writer.blocked(input);
            writer.add(training ? by_statistics_of_batch(op, image, momentum, epsilon)
                                : by_running_statistics(op, image, epsilon));
          }};
}

}  // namespace renkei::rewrite
