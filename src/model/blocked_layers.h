// The layers of layers.h by the kernels of kernels.h: which of them can be done so, and how. Images
// are tensors of batch × channels/8 × height × width × 8.
#pragma once

#include <torch/torch.h>

namespace renkei::model::blocked {

using torch::Tensor;

inline bool is_blocked(const Tensor& image) {
  return image.dim() == 5;
}
Tensor to_blocked(const Tensor& plain);
Tensor to_plain(const Tensor& image);  // as it is, if it is plain already

// Whether the kernels can do this convolution of this input, plain or blocked.
bool takes(const Tensor& input, const torch::nn::Conv2dImpl& conv);

Tensor conv(const Tensor& input, const torch::nn::Conv2dImpl& conv, bool relu);

// Normalises, adds the residual where there is one, and applies a ReLU where asked. Updates the
// running statistics in training, and uses them in evaluation.
bool takes(const Tensor& input, const torch::nn::BatchNorm2dImpl& bn);
Tensor batch_norm(const Tensor& input, torch::nn::BatchNorm2dImpl& bn, const Tensor& residual,
                  bool relu);

struct Pool {
  int64_t kernel, stride, padding;
  bool max;
};
Tensor pool(const Tensor& input, const Pool& pool);

// x Wᵀ + b, then a ReLU where asked. For plain matrices.
bool takes(const Tensor& input, const torch::nn::LinearImpl& linear);
Tensor linear(const Tensor& input, const torch::nn::LinearImpl& linear, bool relu);

}  // namespace renkei::model::blocked
