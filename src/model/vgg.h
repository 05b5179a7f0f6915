#pragma once

#include "model/image_network.h"

namespace renkei::model {

// VGG (Simonyan and Zisserman 2014, arXiv:1409.1556): 3 × 3 convolutions in five groups, each
// followed by pooling, then three dense layers. `layers` is 11, 13, 16 or 19.
class Vgg : public ImageNetwork {
 public:
  Vgg(int layers, bool batch_norm, const ImageOptions& options);

  torch::Tensor forward(torch::Tensor input) override;

 private:
  struct Unit {
    torch::nn::Conv2d conv{nullptr};
    torch::nn::BatchNorm2d bn{nullptr};  // only with batch normalisation
    bool ends_group = false;
  };
  std::vector<Unit> units_;
  std::vector<torch::nn::Linear> linears_;
  double dropout_;
};

std::vector<NetworkDescription> vgg_networks();

}  // namespace renkei::model
