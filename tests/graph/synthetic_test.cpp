#include "graph/synthetic.h"

#include <gtest/gtest.h>

#include "tests/base/thrown_error.h"

namespace renkei::graph {
namespace {

int64_t trainable_count(const Graph& graph) {
  int64_t count = 0;
  for (const Parameter& parameter : graph.parameters)
    if (parameter.trainable) count += parameter.bytes / 4;
  return count;
}

// The published numbers of parameters.
TEST(Synthetic, NetworksHaveTheParametersOfTheOriginals) {
  EXPECT_EQ(trainable_count(resnet({})), 25'557'032);
  EXPECT_EQ(trainable_count(resnet({.blocks = {3, 8, 36, 3}})), 60'192'808);
  EXPECT_EQ(trainable_count(vgg16(1)), 138'357'544 - 4224);  // its convolutions have no bias here
  EXPECT_EQ(trainable_count(alexnet(1)), 61'100'840 - 1152);
  EXPECT_EQ(trainable_count(inception_v3(1)), 23'834'568);
  EXPECT_EQ(trainable_count(mlp(512, 10, 1)), 2'626'560);
  const double bert =
      static_cast<double>(trainable_count(transformer({.layers = 96, .hidden = 2048})));
  EXPECT_NEAR(bert, 4.9e9, 0.05e9);
}

TEST(Synthetic, NetworksHaveTheWorkOfTheOriginals) {
  double flops = 0;
  for (const Op& op : resnet({}).ops) flops += op.flops;
  EXPECT_NEAR(flops, 2 * 4.1e9, 0.1e9);  // 4.1 G multiply-adds for an image
  flops = 0;
  for (const Op& op : alexnet(1).ops) flops += op.flops;
  EXPECT_NEAR(flops, 2 * 0.71e9, 0.02e9);
}

TEST(Synthetic, RandomGraphsAreTheSameForTheSameSeed) {
  Random first(1, RandomUse::random_input, 0, 5), second(1, RandomUse::random_input, 0, 5);
  const Graph a = random_graph({.ops = 12}, first), b = random_graph({.ops = 12}, second);
  ASSERT_EQ(a.ops.size(), 12u);
  for (size_t op = 0; op < 12; ++op) {
    EXPECT_EQ(a.ops[op].inputs, b.ops[op].inputs);
    EXPECT_EQ(a.ops[op].forward_seconds, b.ops[op].forward_seconds);
  }
}

TEST(Synthetic, NamedNetworksTakeTheirDimensions) {
  const Graph bert = named_network("bert", {{"layers", 2}, {"hidden", 128}}, 4);
  EXPECT_EQ(bert.batch, 4);
  EXPECT_EQ(bert.ops.size(), 2u + 2 * 14 + 4);
  EXPECT_EQ(test::thrown_error([] {
              named_network("bert", {{"colour", 2}}, 1);
            }).code,
            ErrorCode::usage);
  EXPECT_EQ(test::thrown_error([] { named_network("alexnot", {}, 1); }).code, ErrorCode::usage);
}

}  // namespace
}  // namespace renkei::graph
