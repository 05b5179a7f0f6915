#include "model/blocked_layers.h"

#include "compute/convolution.h"
#include "model/compute_options.h"
#include "model/kernels.h"

namespace renkei::model::blocked {

using compute::kBlock;

namespace {

c10::optional<Tensor> optional(const Tensor& tensor) {
  return tensor.defined() ? c10::optional<Tensor>(tensor) : c10::nullopt;
}

bool is_for_kernels(const Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat32 && (tensor.is_cpu() || tensor.is_meta());
}

}  // namespace

Tensor to_blocked(const Tensor& plain) {
  return plain.view({plain.size(0), plain.size(1) / kBlock, kBlock, plain.size(2), plain.size(3)})
      .permute({0, 1, 3, 4, 2})
      .contiguous();
}

Tensor to_plain(const Tensor& image) {
  if (!is_blocked(image)) return image;
  return image.permute({0, 1, 4, 2, 3})
      .reshape({image.size(0), image.size(1) * kBlock, image.size(2), image.size(3)});
}

bool takes(const Tensor& input, const torch::nn::Conv2dImpl& conv) {
  const auto& options = conv.options;
  return compute_options().blocked_layout && is_for_kernels(input) && options.groups() == 1 &&
         options.dilation()->at(0) == 1 && options.dilation()->at(1) == 1 &&
         options.stride()->at(0) == options.stride()->at(1) &&
         c10::holds_alternative<torch::ExpandingArray<2>>(options.padding()) &&
         c10::holds_alternative<torch::enumtype::kZeros>(options.padding_mode()) &&
         options.out_channels() % kBlock == 0 &&
         // The kernels give no gradient to a plain image.
         (is_blocked(input) || options.in_channels() % kBlock == 0 || !input.requires_grad());
}

Tensor conv(const Tensor& input, const torch::nn::Conv2dImpl& conv, bool relu) {
  const bool convert = !is_blocked(input) && conv.options.in_channels() % kBlock == 0;
  const auto& padding = c10::get<torch::ExpandingArray<2>>(conv.options.padding());
  return kernels::conv(convert ? to_blocked(input.contiguous()) : input, conv.weight,
                       optional(conv.bias), conv.options.stride()->at(0), padding->at(0),
                       padding->at(1), relu);
}

bool takes(const Tensor& input, const torch::nn::BatchNorm2dImpl& bn) {
  const bool statistics_of_batch = bn.is_training() || !bn.running_mean.defined();
  return is_blocked(input) && bn.weight.defined() &&
         (statistics_of_batch || !torch::GradMode::is_enabled());
}

Tensor batch_norm(const Tensor& input, torch::nn::BatchNorm2dImpl& bn, const Tensor& residual,
                  bool relu) {
  const auto residual_or_none = optional(residual);
  if (bn.is_training() || !bn.running_mean.defined())
    return kernels::batch_norm(input, bn.weight, bn.bias, optional(bn.running_mean),
                               optional(bn.running_var), optional(bn.num_batches_tracked),
                               residual_or_none, bn.options.momentum(), bn.options.eps(), relu);
  return kernels::normalise(input, bn.weight, bn.bias, bn.running_mean, bn.running_var,
                            residual_or_none, bn.options.eps(), relu);
}

Tensor pool(const Tensor& input, const Pool& pool) {
  return kernels::pool(input, pool.kernel, pool.stride, pool.padding, pool.max);
}

bool takes(const Tensor& input, const torch::nn::LinearImpl& linear) {
  return compute_options().blocked_layout && is_for_kernels(input) && input.dim() == 2 &&
         linear.bias.defined();
}

Tensor linear(const Tensor& input, const torch::nn::LinearImpl& linear, bool relu) {
  return kernels::linear(input, linear.weight, linear.bias, relu);
}

}  // namespace renkei::model::blocked
