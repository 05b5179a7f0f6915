#pragma once

#include "model/network.h"

namespace renkei::model {

// LeNet-5's shape (LeCun et al. 1998) with today's parts: two convolutions with ReLU and max
// pooling, three dense layers, for 3 × 32 × 32 images.
class LeNet : public Network {
 public:
  explicit LeNet(int64_t classes);

  torch::Tensor forward(torch::Tensor input) override;
  std::vector<int64_t> input_shape() const override { return {3, 32, 32}; }
  int64_t outputs() const override { return classes_; }

 private:
  int64_t classes_;
  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::Linear fc1_, fc2_, fc3_;
};

}  // namespace renkei::model
