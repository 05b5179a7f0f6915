// Inception-v3 (Szegedy et al. 2015, arXiv:1512.00567).
#pragma once

#include "model/image_network.h"

namespace renkei::model {

// Convolution, batch normalisation, ReLU.
class ConvUnit : public torch::nn::Module {
 public:
  explicit ConvUnit(const torch::nn::Conv2dOptions& options);

  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d bn_{nullptr};
};

// A block of parallel branches whose channels are put one after another.
class InceptionBlock : public torch::nn::Module {
 public:
  struct Kernel {
    int64_t height, width;
  };
  struct Conv {
    std::string name;
    int64_t out;
    Kernel kernel;
    int64_t stride = 1;  // 1: padded so that the image keeps its size; 2: not padded
  };
  enum class Pool { none, average, max_stride_2 };
  struct Branch {
    std::vector<Conv> chain;
    std::vector<Conv> ends = {};  // instead of one end several, all of them outputs
    Pool pool = Pool::none;       // before the chain
  };

  InceptionBlock(int64_t in, const std::vector<Branch>& branches);

  torch::Tensor forward(const torch::Tensor& input);
  int64_t out() const { return out_; }

 private:
  using Units = std::vector<std::shared_ptr<ConvUnit>>;
  struct MadeBranch {
    Pool pool;
    Units chain, ends;
  };
  int64_t add(Units& units, const Conv& conv, int64_t in);

  std::vector<MadeBranch> branches_;
  int64_t out_ = 0;
};

class InceptionV3 : public ImageNetwork {
 public:
  explicit InceptionV3(const ImageOptions& options);

  torch::Tensor forward(torch::Tensor input) override { return forward_all(input).main; }
  Outputs forward_all(torch::Tensor input) override;

 private:
  torch::Tensor auxiliary_head(torch::Tensor input);
  void draw_initial_values();

  std::vector<std::shared_ptr<ConvUnit>> stem_;
  std::vector<std::shared_ptr<InceptionBlock>> blocks_;
  std::vector<std::shared_ptr<ConvUnit>> auxiliary_units_;  // empty without the head
  torch::nn::Linear auxiliary_linear_{nullptr};
  torch::nn::Linear linear_{nullptr};
  double dropout_;
};

std::vector<NetworkDescription> inception_networks();

}  // namespace renkei::model
