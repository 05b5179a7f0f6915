#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rewrite/sketch.h"

namespace renkei::rewrite {
namespace {

TEST(Dense, LayersTakeTheirRelu) {
  Sketch net;
  const ValueId x = net.input("x", {net.batch, 64});
  net.output(net.linear("b", net.relu_(net.linear("a", x, 32)), 10));
  const auto program = rewrite(net.program, {}).program;
  ASSERT_EQ(program.ops.size(), 2U);
  EXPECT_TRUE(std::get<bool>(*find_argument(program.ops[0], "relu")));
  EXPECT_FALSE(std::get<bool>(*find_argument(program.ops[1], "relu")));
}

TEST(Dense, LeavesAReluWhoseInputOthersRead) {
  Sketch net;
  const ValueId y = net.linear("a", net.input("x", {net.batch, 64}), 32);
  net.output(net.binary("add", net.relu(y), y));
  EXPECT_EQ(count(rewrite(net.program, {}).program, "aten.relu.default"), 1);
}

TEST(Dense, MoreDimensionsAreSeenAsRows) {
  Sketch net;
  const ValueId x = net.input("x", {net.batch, 197, 64});
  net.output(net.relu(net.linear("a", x, 32)));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_EQ(count_targets(program),
            (Counts{{"aten.reshape.default", 2}, {"renkei.linear.default", 1}}));
  EXPECT_EQ(program.value(program.ops[1].outputs[0]).sizes[1], Size(32));
  EXPECT_EQ(program.value(program.outputs[0].value).sizes, (std::vector<Size>{net.batch, 197, 32}));
  const auto& shape = std::get<List>(*find_argument(program.ops[2], "shape"));
  EXPECT_EQ(shape, (List{int64_t{-1}, int64_t{197}, int64_t{32}}));
}

TEST(Dense, AsksForASecondSizeThatIsNotFixed) {
  Sketch net;
  net.program.symbols.push_back({.name = "tokens"});
  const ValueId x = net.input("x", {net.batch, Size::expression("tokens"), 64});
  net.output(net.linear("a", x, 32));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_EQ(count(program, "aten.sym_size.int"), 1);
  const auto& shape = std::get<List>(*find_argument(program.ops.back(), "shape"));
  EXPECT_TRUE(std::holds_alternative<Reference>(shape[1]));
}

TEST(Dense, WithoutABiasIsOneOperationToo) {
  Sketch net;
  net.output(net.linear("a", net.input("x", {net.batch, 64}), 32, false));
  const auto rewritten = rewrite(net.program, {});
  ASSERT_EQ(count(rewritten.program, "renkei.linear.default"), 1);
  const auto* bias = program::find_argument(rewritten.program.ops.back(), "bias");
  ASSERT_TRUE(bias);
  EXPECT_TRUE(std::holds_alternative<program::None>(*bias));
}

TEST(Dense, CanBeSwitchedOff) {
  Sketch net;
  net.output(net.linear("a", net.input("x", {net.batch, 64}), 32));
  EXPECT_EQ(count(rewrite(net.program, {.dense = false}).program, "aten.linear.default"), 1);
}

}  // namespace
}  // namespace renkei::rewrite
