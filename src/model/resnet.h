#pragma once

#include "model/image_network.h"

namespace renkei::model {

// A residual block: two 3 × 3 convolutions, or (a bottleneck) 1 × 1, 3 × 3 and 1 × 1 with four
// times the channels, added to the input. A stride is taken by the 3 × 3 convolution.
class ResidualBlock : public torch::nn::Module {
 public:
  ResidualBlock(int64_t in, int64_t channels, int64_t stride, bool bottleneck);

  torch::Tensor forward(torch::Tensor input);

 private:
  void add(const std::string& number, int64_t in, int64_t out, int64_t kernel, int64_t stride);

  std::vector<torch::nn::Conv2d> convs_;
  std::vector<torch::nn::BatchNorm2d> bns_;
  torch::nn::Conv2d shortcut_conv_{nullptr};  // where input and output differ in shape
  torch::nn::BatchNorm2d shortcut_bn_{nullptr};
};

// ResNet (He et al. 2015, arXiv:1512.03385) with 18, 34, 50, 101 or 152 layers.
class ResNet : public ImageNetwork {
 public:
  ResNet(int layers, const ImageOptions& options);

  torch::Tensor forward(torch::Tensor input) override;

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d bn_{nullptr};
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  torch::nn::Linear linear_{nullptr};
};

std::vector<NetworkDescription> resnet_networks();

}  // namespace renkei::model
