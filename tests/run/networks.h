// Small networks with their data, for tests of training.
#pragma once

#include <memory>
#include <string>

#include "data/dataset.h"
#include "model/network.h"
#include "run/trainer.h"

namespace renkei::run {

struct TestCase {
  std::shared_ptr<const data::Dataset> data, held_out;
  std::function<std::shared_ptr<model::Network>()> make_network;  // the same on every call
  model::Objective objective = model::Objective::classification;
  int64_t batch = 8;
  bool tied = false;  // a weight is used in several places
  TrainOptions options;
};

// "mlp", "lenet", "resnet18", "vgg11", "inception", "gpt", "bert", "unet". With dropout and batch
// normalisation where the network has them; the last batch of an epoch is smaller.
TestCase test_case(const std::string& name);

}  // namespace renkei::run
