#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rewrite/sketch.h"

namespace renkei::rewrite {
namespace {

using testing::HasSubstr;

bool has_relu(const Program& program, const std::string& target) {
  for (const Op& op : program.ops)
    if (op.target == target) return std::get<bool>(*find_argument(op, "relu"));
  return false;
}

const Op& first(const Program& program, const std::string& target) {
  return *std::find_if(program.ops.begin(), program.ops.end(),
                       [&](const Op& op) { return op.target == target; });
}

TEST(ConvolutionRelu, IsOneOperation) {
  for (const char* name : {"relu", "relu_"}) {
    Sketch net;
    net.output(net.unary(name, net.conv("conv", net.image(3, 32), 16)));
    const auto program = rewrite(net.program, {}).program;
    EXPECT_TRUE(has_relu(program, "renkei.conv.default"));
    EXPECT_EQ(program.ops.size(), 2U);  // and the conversion of the output
  }
}

TEST(ConvolutionRelu, StaysTwoWhereTheConvolutionIsReadByOthers) {
  Sketch net;
  const ValueId x = net.conv("conv", net.image(3, 32), 16);
  net.output(net.binary("add", net.relu(x), x));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_FALSE(has_relu(program, "renkei.conv.default"));
  EXPECT_EQ(count(program, "aten.relu.default"), 1);
}

TEST(ConvolutionRelu, StaysTwoWhereTheConvolutionIsAnOutput) {
  Sketch net;
  const ValueId x = net.conv("conv", net.image(3, 32), 16);
  net.output(x);
  net.output(net.relu(x));
  EXPECT_FALSE(has_relu(rewrite(net.program, {}).program, "renkei.conv.default"));
}

TEST(InPlace, WhoReadsTheOverwrittenValueLaterReadsTheResult) {
  Sketch net;
  const ValueId x = net.conv("conv", net.image(3, 32), 16);
  net.relu_(x);
  net.output(net.conv("next", x, 16));
  const auto program = rewrite(net.program, {}).program;
  const Op& conv = program.ops[0];
  const Op& next = program.ops[1];
  EXPECT_TRUE(has_relu(program, "renkei.conv.default"));
  EXPECT_EQ(std::get<Reference>(*find_argument(next, "input")).value, conv.outputs[0]);
}

TEST(InPlace, WhoReadTheValueBeforeStillReadsIt) {
  Sketch net;
  const ValueId x = net.conv("conv", net.image(3, 32), 16);
  const ValueId before = net.unary("sigmoid", x);
  net.output(net.binary("mul", before, net.relu_(x)));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_FALSE(has_relu(program, "renkei.conv.default"));
  EXPECT_EQ(count(program, "aten.relu.default"), 1);
}

TEST(InPlace, OnAViewIsAnOperationOfItsOwnIfNobodyReadsTheImageLater) {
  for (const bool is_read : {false, true}) {
    Sketch net;
    const ValueId pixels = net.global_pool(net.conv("conv", net.image(3, 32), 16));
    const ValueId rows = net.flatten(pixels);
    net.output(net.op("aten.dropout_.default",
                      {{"self", Reference{rows}}, {"p", 0.5}, {"train", true}}, {net.batch, 16}));
    if (is_read) net.output(net.unary("cos", pixels));
    const auto program = rewrite(net.program, {}).program;
    EXPECT_EQ(count(program, "aten.dropout.default"), is_read ? 0 : 1);
    EXPECT_EQ(count(program, "renkei.to_plain.default"), is_read ? 1 : 0);
  }
}

TEST(InPlace, ComesBackWhereNothingWasRewritten) {
  Sketch net;
  const ValueId x = net.unary("cos", net.image(3, 32));
  net.output(net.relu_(x));
  EXPECT_EQ(count(rewrite(net.program, {}).program, "aten.relu_.default"), 1);
}

TEST(InPlace, OnInputsAndStateIsLeftAlone) {
  Sketch net;
  const ValueId x = net.image(16, 32);
  const ValueId total = net.state("total", {1}, StateKind::buffer);
  net.op("aten.add_.Tensor", {{"self", Reference{total}}, {"other", int64_t{1}}}, {1});
  net.output(net.conv("conv", net.relu_(x), 16));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_EQ(count(program, "aten.relu_.default"), 1);
  EXPECT_EQ(count(program, "aten.add_.Tensor"), 1);
  EXPECT_EQ(count(program, "aten.conv2d.default"), 1);  // its input is changed in place
}

TEST(BatchNorm, TakesTheSumAndTheRelu) {
  Sketch net;
  const ValueId x = net.conv("a", net.image(3, 32), 16);
  const ValueId y = net.batch_norm("bn", net.conv("b", x, 16));
  net.output(net.relu_(net.binary("add_", y, x)));
  const auto program = rewrite(net.program, {}).program;
  const Op& bn = first(program, "renkei.batch_norm.default");
  EXPECT_TRUE(std::get<bool>(*find_argument(bn, "relu")));
  EXPECT_EQ(std::get<Reference>(*find_argument(bn, "residual")).value, program.ops[0].outputs[0]);
  EXPECT_EQ(count(program, "aten.add.Tensor") + count(program, "aten.add_.Tensor"), 0);
}

TEST(BatchNorm, TakesTheSumFromEitherSide) {
  Sketch net;
  const ValueId x = net.conv("a", net.image(3, 32), 16);
  net.output(net.binary("add", x, net.batch_norm("bn", net.conv("b", x, 16))));
  EXPECT_EQ(count(rewrite(net.program, {}).program, "aten.add.Tensor"), 0);
}

TEST(BatchNorm, TakesNoSumThatIsScaledOrBroadcast) {
  for (const bool scaled : {false, true}) {
    Sketch net;
    const ValueId x = net.conv("a", net.image(3, 32), 16);
    const ValueId y = net.batch_norm("bn", net.conv("b", x, 16));
    net.output(net.binary("add", y, scaled ? x : net.global_pool(x)));
    if (scaled) set_argument(net.program.ops.back(), "alpha", 0.5);
    EXPECT_EQ(count(rewrite(net.program, {}).program, "aten.add.Tensor"), 1);
  }
}

TEST(BatchNorm, TakesNoReluBeforeTheSum) {
  Sketch net;
  const ValueId x = net.conv("a", net.image(3, 32), 16);
  const ValueId y = net.relu(net.batch_norm("bn", net.conv("b", x, 16)));
  net.output(net.binary("add", y, x));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_TRUE(has_relu(program, "renkei.batch_norm.default"));
  EXPECT_EQ(count(program, "aten.add.Tensor"), 1);
}

TEST(BatchNorm, IsNotMovedAcrossAReadingOfItsStatistics) {
  Sketch net;
  const ValueId x = net.conv("a", net.image(3, 32), 16);
  const ValueId y = net.batch_norm("bn", net.conv("b", x, 16));
  ValueId mean = kNoValue;
  for (const State& state : net.program.state)
    if (state.name == "bn.running_mean") mean = state.value;
  net.output(net.unary("cos", mean));  // between the normalisation and the sum
  net.output(net.binary("add", y, net.unary("sigmoid", x)));
  EXPECT_EQ(count(rewrite(net.program, {}).program, "aten.add.Tensor"), 1);
}

TEST(BatchNorm, CountsItselfWhereNobodyReadsTheCount) {
  for (const bool is_read : {false, true}) {
    Sketch net;
    net.output(net.batch_norm("bn", net.conv("a", net.image(3, 32), 16)));
    if (is_read)
      for (const State& state : std::vector<State>(net.program.state))
        if (state.name == "bn.num_batches_tracked") net.output(net.unary("cos", state.value));
    const auto program = rewrite(net.program, {}).program;
    EXPECT_EQ(count(program, "aten.add_.Tensor"), is_read ? 1 : 0);
    const Op& bn = first(program, "renkei.batch_norm.default");
    EXPECT_EQ(std::holds_alternative<None>(*find_argument(bn, "batches")), is_read);
  }
}

TEST(Identities, AreRemoved) {
  Sketch net;
  ValueId x = net.conv("a", net.image(3, 32), 16);
  x = net.op("aten.cat.default", {{"tensors", List{Reference{x}}}, {"dim", int64_t{1}}},
             std::vector<Size>(net.sizes(x)));
  x = net.op("aten.dropout.default", {{"input", Reference{x}}, {"p", 0.0}, {"train", true}},
             std::vector<Size>(net.sizes(x)));
  x = net.op("aten.adaptive_avg_pool2d.default",
             {{"self", Reference{x}}, {"output_size", List{int64_t{32}, int64_t{32}}}},
             std::vector<Size>(net.sizes(x)));
  net.output(net.relu(x));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_TRUE(has_relu(program, "renkei.conv.default"));
  EXPECT_EQ(program.ops.size(), 2U);
}

TEST(Identities, StayWhereTheCopyIsWritten) {
  Sketch net;
  const ValueId x = net.image(16, 32);
  const ValueId copy =
      net.op("aten.cat.default", {{"tensors", List{Reference{x}}}, {"dim", int64_t{1}}},
             std::vector<Size>(net.sizes(x)));
  net.op("aten.cos_.default", {{"self", Reference{copy}}}, std::vector<Size>(net.sizes(x)));
  net.output(net.binary("add", copy, x));
  EXPECT_EQ(count(rewrite(net.program, {}).program, "aten.cat.default"), 1);
}

}  // namespace
}  // namespace renkei::rewrite
