#pragma once

#include "model/image_network.h"

namespace renkei::model {

// AlexNet in its one-tower form (Krizhevsky 2014, arXiv:1404.5997).
class AlexNet : public ImageNetwork {
 public:
  explicit AlexNet(const ImageOptions& options);

  torch::Tensor forward(torch::Tensor input) override;

 private:
  std::vector<torch::nn::Conv2d> convs_;
  std::vector<torch::nn::Linear> linears_;
  double dropout_;
};

std::vector<NetworkDescription> alexnet_networks();

}  // namespace renkei::model
