// Small networks with their data, for tests of training.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "job/session.h"
#include "networks/network.h"
#include "run/make_model.h"

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

// As a training has them by default, with blocks of 16 on every machine.
rewrite::RewriteOptions all_rewrites();

// With the loss for the data. The same seed gives the same values.
Model make_model_for(const networks::Network& network, networks::Objective objective,
                     const data::Dataset& data, uint64_t seed = 1,
                     const rewrite::RewriteOptions& rewrite = all_rewrites(),
                     const shard::ShardOptions& shard = {});
networks::LossOptions loss_for(networks::Objective objective, const data::Dataset& data);

struct TestCase {
  Model make_model(uint64_t seed = 1, const shard::ShardOptions& shard = {}) const {
    return make_model_for(make_network(), objective, *data, seed, rewrite, shard);
  }

  std::shared_ptr<const data::Dataset> data, held_out;
  std::function<networks::Network()> make_network;
  networks::Objective objective = networks::Objective::classification;
  int64_t batch = 8;
  bool tied = false;  // a weight is used in several places
  TrainOptions options;
  rewrite::RewriteOptions rewrite = all_rewrites();
};

// "mlp", "lenet", "resnet18", "vgg11", "inception", "gpt", "bert", "unet". With dropout and batch
// normalisation where the network has them; the last batch of an epoch is smaller.
TestCase test_case(const std::string& name);

}  // namespace renkei::run
