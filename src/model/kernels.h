// The kernels of compute/ as operators of Torch, with their gradients. Every call goes through
// Torch's dispatcher, under the name renkei::…, so that a trace of a network has them as single
// operations (capture.h).
//
// Images are tensors of batch × channels/8 × height × width × 8; those that convolutions take may
// be plain, batch × channels × height × width, and then get no gradient.
#pragma once

#include <torch/torch.h>

namespace renkei::model::kernels {

using torch::Tensor;

Tensor conv(const Tensor& input, const Tensor& weight, const c10::optional<Tensor>& bias,
            int64_t stride, int64_t padding_height, int64_t padding_width, bool relu);

// Normalises by the statistics of the batch, adds the residual where there is one, and applies a
// ReLU where asked. Updates the running statistics, of which there are all three or none; without
// momentum they are the mean over all batches.
Tensor batch_norm(const Tensor& input, const Tensor& gamma, const Tensor& beta,
                  const c10::optional<Tensor>& running_mean,
                  const c10::optional<Tensor>& running_variance,
                  const c10::optional<Tensor>& batches, const c10::optional<Tensor>& residual,
                  c10::optional<double> momentum, double epsilon, bool relu);
// The same by given statistics, for evaluation: without gradients.
Tensor normalise(const Tensor& input, const Tensor& gamma, const Tensor& beta, const Tensor& mean,
                 const Tensor& variance, const c10::optional<Tensor>& residual, double epsilon,
                 bool relu);

Tensor pool(const Tensor& input, int64_t window, int64_t stride, int64_t padding, bool max);

// x Wᵀ + b, then a ReLU where asked. For plain matrices.
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu);

}  // namespace renkei::model::kernels
