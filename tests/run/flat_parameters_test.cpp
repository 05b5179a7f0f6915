#include "run/flat_parameters.h"

#include <gtest/gtest.h>

#include "model/compute_options.h"
#include "model/gradient_sink.h"
#include "model/lenet.h"
#include "model/mlp.h"
#include "run/buffers.h"

namespace renkei::run {
namespace {

TEST(FlatParameters, TheNetworkComputesAsBefore) {
  torch::manual_seed(1);
  model::LeNet network(10);
  const torch::Tensor input = torch::randn({2, 3, 32, 32});
  const torch::Tensor before = network.forward(input);
  FlatParameters flat(network);
  EXPECT_TRUE(torch::equal(network.forward(input), before));
}

TEST(FlatParameters, GradientsOfTwoBackwardsAddUpInTheFlatBuffer) {
  torch::manual_seed(1);
  model::Mlp network(7, 2);
  FlatParameters flat(network);
  const torch::Tensor input = torch::randn({3, 7});
  network.forward(input).sum().backward();
  const torch::Tensor once = flat.gradients().clone();
  EXPECT_GT(once.abs().max().item<float>(), 0);
  network.forward(input).sum().backward();
  EXPECT_TRUE(torch::allclose(flat.gradients(), once * 2));
  model::GradientSink::of_this_thread().begin_step();
  flat.begin_step();
  network.forward(input).sum().backward();
  EXPECT_TRUE(torch::equal(flat.gradients(), once));
}

TEST(FlatParameters, GradientsOfAStepWithoutBackwardAreZero) {
  for (const bool direct : {true, false}) {
    model::compute_options().direct_gradients = direct;
    model::Mlp network(7, 2);
    FlatParameters flat(network);
    network.forward(torch::randn({3, 7})).sum().backward();
    EXPECT_GT(flat.gradients().abs().max().item<float>(), 0);
    model::GradientSink::of_this_thread().begin_step();
    flat.begin_step();
    for (const auto& slot : flat.slots()) flat.settle(slot);
    EXPECT_EQ(flat.gradients().abs().max().item<float>(), 0);
  }
  model::compute_options() = {};
}

TEST(FlatParameters, GradientsAreTheSameWrittenDirectlyOrByAutograd) {
  torch::manual_seed(1);
  model::Mlp network(7, 2);
  FlatParameters flat(network);
  const torch::Tensor input = torch::randn({3, 7});
  network.forward(input).sum().backward();
  const torch::Tensor direct = flat.gradients().clone();
  model::GradientSink::of_this_thread().begin_step();
  flat.begin_step();
  for (const auto& slot : flat.slots()) flat.settle(slot);
  model::compute_options().direct_gradients = false;
  network.forward(input).sum().backward();
  model::compute_options() = {};
  EXPECT_TRUE(torch::equal(flat.gradients(), direct));
}

TEST(FlatParameters, ParametersFollowTheFlatBufferAndStartOnCacheLines) {
  model::Mlp network(5, 3);
  FlatParameters flat(network);
  flat.values().fill_(3);
  for (const torch::Tensor& parameter : network.parameters()) {
    EXPECT_EQ(parameter.min().item<float>(), 3);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(parameter.data_ptr<float>()) % 64, 0u);
  }
}

TEST(ChecksumOfTensors, SeesOneChangedBit) {
  model::Mlp network(5, 3);
  const std::string before = checksum_of(network.parameters());
  EXPECT_EQ(checksum_of(network.parameters()), before);
  network.parameters()[2].data()[0][0] += 1e-3f;
  EXPECT_NE(checksum_of(network.parameters()), before);
}

}  // namespace
}  // namespace renkei::run
