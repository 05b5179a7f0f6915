#include "model/layer_costs.h"

#include <gtest/gtest.h>

#include "model/mlp.h"
#include "model/resnet.h"

namespace renkei::model {
namespace {

TEST(LayerCosts, OfAnMlpAreCountedByHand) {
  Mlp network(10, 2);
  const auto layers = layer_costs(network);
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].name, "layer0");
  EXPECT_EQ(layers[0].kind, "linear");
  EXPECT_EQ(layers[0].output_shape, (std::vector<int64_t>{10}));
  EXPECT_EQ(layers[0].parameters, 110);
  EXPECT_EQ(layers[0].flops, 200);
  EXPECT_EQ(layers[0].activation_bytes, 40);
  EXPECT_EQ(layers[1].kind, "ReLU");
  EXPECT_EQ(layers[1].flops, 0);
}

TEST(LayerCosts, OfResNet18AreThePublishedOnes) {
  ResNet network(18, {});
  int64_t flops = 0, parameters = 0;
  for (const LayerCost& layer : layer_costs(network)) {
    flops += layer.flops;
    parameters += layer.parameters;
  }
  EXPECT_EQ(parameters, 11'689'512);
  EXPECT_NEAR(static_cast<double>(flops), 2 * 1.814e9, 0.01e9);  // torchvision's 1.814 GFLOPS
}

}  // namespace
}  // namespace renkei::model
