// Small networks with their data, for tests of training.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "model/network.h"
#include "run/trainer.h"

namespace renkei::run {

// Keeps the losses of all steps.
class Losses : public Observer {
 public:
  explicit Losses(std::vector<double>& losses) : losses_(losses) {}
  void on_step(const StepReport& report) override { losses_.push_back(report.loss); }
  void on_evaluation(int64_t, const Evaluation&) override {}

 private:
  std::vector<double>& losses_;
};

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
