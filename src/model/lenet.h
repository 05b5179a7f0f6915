#pragma once

#include "model/image_network.h"

namespace renkei::model {

// LeNet-5's shape (LeCun et al. 1998) with today's parts: two convolutions with ReLU and max
// pooling, three dense layers, for 3 × 32 × 32 images.
class LeNet : public ImageNetwork {
 public:
  explicit LeNet(int64_t classes);

  torch::Tensor forward(torch::Tensor input) override;

 private:
  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::Linear fc1_, fc2_, fc3_;
};

std::vector<NetworkDescription> lenet_networks();

}  // namespace renkei::model
