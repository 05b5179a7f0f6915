#include "program/builder.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::program {
namespace {

TEST(Builder, NamesModulesByTheOpenScopes) {
  Builder builder("net");
  const ValueId input = builder.input("input", DType::f32, {builder.batch(), 4});
  {
    const auto outer = builder.scope("layer1");
    const auto inner = builder.scope("0");
    builder.parameter("weight", {3}, {});
    builder.relu(input, "relu");
  }
  builder.output("output", builder.gelu(input));
  const Program program = builder.finish();
  EXPECT_EQ(program.state[0].name, "layer1.0.weight");
  EXPECT_EQ(program.ops[0].module, "layer1.0.relu");
  EXPECT_EQ(program.ops[1].module, "");
}

TEST(Builder, PutsParametersBeforeBuffers) {
  Builder builder("net");
  builder.buffer("mean", {3}, DType::f32, {});
  builder.parameter("weight", {3}, {});
  builder.buffer("variance", {3}, DType::f32, {});
  builder.parameter("bias", {3}, {});
  const Program program = builder.finish();
  std::vector<std::string> names;
  for (const State& state : program.state) names.push_back(state.name);
  EXPECT_EQ(names, (std::vector<std::string>{"weight", "bias", "mean", "variance"}));
}

TEST(Builder, KnowsTheShapesOfResults) {
  Builder builder("net");
  const Size batch = builder.batch();
  const ValueId image = builder.input("input", DType::f32, {batch, 3, 11, 8});
  const ValueId weight = builder.parameter("weight", {5, 3, 3, 2}, {});
  const ValueId conv =
      builder.conv2d(image, weight, kNoValue, {.kernel = {3, 2}, .stride = 2, .padding = {1, 0}});
  EXPECT_EQ(builder.sizes(conv), (std::vector<Size>{batch, 5, 6, 4}));
  const ValueId rows = builder.flatten(conv, 1);
  EXPECT_EQ(builder.sizes(rows), (std::vector<Size>{batch, 120}));
  EXPECT_EQ(builder.sizes(builder.flatten(rows, 0)), std::vector<Size>{batch * 120});
  const std::vector<ValueId> joined{conv, conv};
  EXPECT_EQ(builder.sizes(builder.cat(joined, 1)), (std::vector<Size>{batch, 10, 6, 4}));
  EXPECT_EQ(builder.sizes(builder.transpose(conv, 1, -1)), (std::vector<Size>{batch, 4, 6, 5}));
  EXPECT_EQ(builder.sizes(builder.split(rows, 40, 1).at(2)), (std::vector<Size>{batch, 40}));
  EXPECT_NO_THROW(builder.finish());
}

TEST(Builder, WritesTheBatchInAViewAsMinusOne) {
  Builder builder("net");
  const ValueId input = builder.input("input", DType::f32, {builder.batch(), 12});
  builder.view(input, {builder.batch(), 3, 4});
  EXPECT_THROW(builder.view(input, {builder.batch(), builder.batch()}), Error);
  const Program program = builder.finish();
  const List& size = std::get<List>(*find_argument(program.ops[0], "size"));
  EXPECT_EQ(std::get<int64_t>(size[0]), -1);
  EXPECT_EQ(std::get<int64_t>(size[1]), 3);
}

TEST(Builder, LeavesOutArgumentsThatHaveTheirDefault) {
  Builder builder("net");
  const ValueId image = builder.input("input", DType::f32, {builder.batch(), 3, 8, 8});
  const ValueId weight = builder.parameter("weight", {5, 3, 3, 3}, {});
  builder.conv2d(image, weight, kNoValue, {.kernel = 3});
  builder.conv2d(image, weight, kNoValue, {.kernel = 3, .stride = 2});
  const Program program = builder.finish();
  EXPECT_EQ(program.ops[0].arguments.size(), 2u);
  EXPECT_EQ(program.ops[1].arguments.size(), 4u);  // bias too: None stands before the stride
  EXPECT_TRUE(std::holds_alternative<None>(*find_argument(program.ops[1], "bias")));
}

TEST(Builder, GoesOnWhereAProgramEnds) {
  Builder first("net");
  first.output("output", first.relu(first.input("input", DType::f32, {first.batch(), 4})));
  Builder second(first.finish());
  const ValueId more = second.relu(second.program().outputs[0].value);
  EXPECT_EQ(second.value(more).name, "relu_1");
  EXPECT_EQ(second.batch(), Size::expression("batch"));
  EXPECT_EQ(second.finish().ops.size(), 2u);
}

TEST(Builder, RefusesShapesThatDoNotFit) {
  Builder builder("net");
  const ValueId image = builder.input("input", DType::f32, {builder.batch(), 3, 2, 2});
  const ValueId weight = builder.parameter("weight", {5, 3}, {});
  EXPECT_THROW(builder.max_pool2d(image, {.kernel = 3, .stride = 2}), Error);
  EXPECT_THROW(builder.linear(image, weight, kNoValue), Error);
  EXPECT_THROW(builder.size(image, 0), Error);
  EXPECT_THROW(builder.split(image, 2, 1), Error);
}

}  // namespace
}  // namespace renkei::program
