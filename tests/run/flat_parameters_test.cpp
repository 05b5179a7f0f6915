#include "run/flat_parameters.h"

#include <gtest/gtest.h>

#include "data/random_data.h"
#include "networks/mlp.h"
#include "run/buffers.h"
#include "run/executor.h"
#include "tests/run/networks.h"

namespace renkei::run {
namespace {

// A small network whose loss can be computed again and again.
class SmallNetwork {
 public:
  SmallNetwork()
      : data_({.sample_shape = {7}, .count = 3, .target_size = 7}),
        model(make_model_for(networks::make_mlp(7, 2), networks::Objective::regression, data_)),
        executor_(model.training.program, whole(model.training.program)) {
    torch::manual_seed(1);
    batch_.inputs["input"] = torch::randn({3, 7});
    batch_.inputs["target"] = torch::randn({3, 7});
    batch_.samples = 3;
  }

  torch::Tensor loss() {
    return executor_
        .run(batch_inputs(model.training.program, executor_.inputs(), batch_),
             tensors_at(model.training.state, executor_.state()), 3, context)
        .at(0);
  }

 private:
  data::RandomData data_;

 public:
  Model model;
  ExecutionContext context;

 private:
  Executor executor_;
  Batch batch_;
};

TEST(FlatParameters, TheNetworkComputesAsBefore) {
  SmallNetwork network;
  const torch::Tensor before = network.loss();
  FlatParameters flat(network.model.trained(), network.context.sink);
  EXPECT_TRUE(torch::equal(network.loss(), before));
}

TEST(FlatParameters, GradientsOfTwoBackwardsAddUpInTheFlatBuffer) {
  SmallNetwork network;
  FlatParameters flat(network.model.trained(), network.context.sink);
  network.loss().backward();
  const torch::Tensor once = flat.gradients().clone();
  EXPECT_GT(once.abs().max().item<float>(), 0);
  network.loss().backward();
  EXPECT_TRUE(torch::allclose(flat.gradients(), once * 2));
  network.context.sink.begin_step();
  flat.begin_step();
  network.loss().backward();
  EXPECT_TRUE(torch::equal(flat.gradients(), once));
}

TEST(FlatParameters, GradientsOfAStepWithoutBackwardAreZero) {
  for (const bool direct : {true, false}) {
    SmallNetwork network;
    network.context.sink.direct = direct;
    FlatParameters flat(network.model.trained(), network.context.sink);
    network.loss().backward();
    EXPECT_GT(flat.gradients().abs().max().item<float>(), 0);
    network.context.sink.begin_step();
    flat.begin_step();
    for (const auto& slot : flat.slots()) flat.settle(slot);
    EXPECT_EQ(flat.gradients().abs().max().item<float>(), 0);
  }
}

TEST(FlatParameters, GradientsAreTheSameWrittenDirectlyOrByAutograd) {
  SmallNetwork network;
  FlatParameters flat(network.model.trained(), network.context.sink);
  network.loss().backward();
  const torch::Tensor direct = flat.gradients().clone();
  network.context.sink.begin_step();
  flat.begin_step();
  for (const auto& slot : flat.slots()) flat.settle(slot);
  network.context.sink.direct = false;
  network.loss().backward();
  EXPECT_TRUE(torch::equal(flat.gradients(), direct));
}

TEST(FlatParameters, ParametersFollowTheFlatBufferAndStartOnCacheLines) {
  SmallNetwork network;
  FlatParameters flat(network.model.trained(), network.context.sink);
  flat.values().fill_(3);
  for (const torch::Tensor& parameter : network.model.trained()) {
    EXPECT_EQ(parameter.min().item<float>(), 3);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(parameter.data_ptr<float>()) % 64, 0u);
  }
}

TEST(ChecksumOfTensors, SeesOneChangedBit) {
  SmallNetwork network;
  const torch::Tensor tensor = network.model.trained()[2];
  const uint64_t before = checksum_of(tensor);
  EXPECT_EQ(checksum_of(tensor), before);
  tensor.data()[0][0] += 1e-3f;
  EXPECT_NE(checksum_of(tensor), before);
}

}  // namespace
}  // namespace renkei::run
