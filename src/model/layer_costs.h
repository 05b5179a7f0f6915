// What each layer of a network computes and keeps, found by watching one forward pass in training
// mode. Works for built-in networks and TorchScript files alike.
#pragma once

#include "model/network.h"

namespace renkei::model {

struct LayerCost {
  std::string name;  // of its parameters, "layer1.0.conv1"; empty without parameters
  std::string kind;  // "convolution"
  std::vector<int64_t> output_shape;  // of one sample
  int64_t parameters = 0;
  int64_t flops = 0;             // per sample, forward; a multiply-add counts 2
  int64_t activation_bytes = 0;  // per sample: its output, 0 where it overwrites its input
};

// FLOPs are those of convolutions and matrix products, which published figures count.
std::vector<LayerCost> layer_costs(Network& network);

}  // namespace renkei::model
