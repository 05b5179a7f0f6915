#include "rewrite/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rewrite/sketch.h"

namespace renkei::rewrite {
namespace {

using testing::HasSubstr;

// The bottleneck block of ResNet, as torch.export writes it.
ValueId bottleneck(Sketch& net, const std::string& name, ValueId x, int64_t width, int64_t stride) {
  ValueId y = net.relu_(net.batch_norm(name + ".bn1", net.conv(name + ".conv1", x, width, 1)));
  y = net.relu_(net.batch_norm(name + ".bn2", net.conv(name + ".conv2", y, width, 3, stride)));
  y = net.batch_norm(name + ".bn3", net.conv(name + ".conv3", y, 4 * width, 1));
  if (net.sizes(x) != net.sizes(y))
    x = net.batch_norm(name + ".downsample.1",
                       net.conv(name + ".downsample.0", x, 4 * width, 1, stride));
  return net.relu_(net.binary("add_", y, x));
}

Sketch resnet50() {
  Sketch net;
  ValueId x = net.image(3, 224);
  x = net.max_pool(net.relu_(net.batch_norm("bn1", net.conv("conv1", x, 64, 7, 2))), 3, 2, 1);
  constexpr int64_t kBlocks[] = {3, 4, 6, 3};
  for (int64_t layer = 0; layer < 4; ++layer)
    for (int64_t block = 0; block < kBlocks[layer]; ++block)
      x = bottleneck(net, "layer" + std::to_string(layer + 1) + "." + std::to_string(block), x,
                     64 << layer, layer > 0 && block == 0 ? 2 : 1);
  net.output(net.linear("fc", net.flatten(net.global_pool(x)), 1000));
  return net;
}

TEST(Layout, ResNet50IsFusedAndStaysInBlockedLayoutFromEndToEnd) {
  const auto rewritten = rewrite(resnet50().program, {});
  EXPECT_EQ(count_targets(rewritten.program), (Counts{{"renkei.conv.default", 53},
                                                      {"renkei.batch_norm.default", 53},
                                                      {"renkei.pool.default", 1},
                                                      {"aten.mean.dim", 1},
                                                      {"aten.flatten.using_ints", 1},
                                                      {"renkei.linear.default", 1}}));
  int with_relu = 0, with_residual = 0, counting = 0;
  for (const Op& op : rewritten.program.ops) {
    if (op.target != "renkei.batch_norm.default") continue;
    with_relu += std::get<bool>(*find_argument(op, "relu")) ? 1 : 0;
    with_residual += std::holds_alternative<Reference>(*find_argument(op, "residual")) ? 1 : 0;
    counting += std::holds_alternative<Reference>(*find_argument(op, "batches")) ? 1 : 0;
  }
  EXPECT_EQ(with_relu, 49);
  EXPECT_EQ(with_residual, 16);
  EXPECT_EQ(counting, 53);
  for (const Applied& applied : rewritten.applied) EXPECT_EQ(applied.why_not, "") << applied.where;
}

TEST(Layout, HasLargerBlocksWhereTheyAreAskedFor) {
  const auto rewritten = rewrite(resnet50().program, {.block = 16});
  EXPECT_EQ(count(rewritten.program, "renkei.conv.general"), 53);
  const Op& first = rewritten.program.ops.front();
  EXPECT_EQ(rewritten.program.value(first.outputs[0]).sizes,
            (std::vector<Size>{Size::expression("batch"), 4, 112, 112, 16}));
}

TEST(Layout, EvaluationNormalisesByTheRunningStatistics) {
  Sketch net;
  const ValueId x = net.image(3, 32);
  net.output(net.global_pool(net.relu(net.batch_norm("bn", net.conv("conv", x, 16), false))));
  EXPECT_EQ(count(rewrite(net.program, {.training = false}).program, "renkei.normalise.default"),
            1);
  // With gradients, Torch's own does it.
  EXPECT_THAT(why_not(rewrite(net.program, {}), "bn"), HasSubstr("gradients"));
}

TEST(Layout, ConvertsAtTheEndsOnly) {
  Sketch net;
  ValueId x = net.image(16, 32);
  for (int i = 0; i < 4; ++i) x = net.relu(net.conv("conv" + std::to_string(i), x, 16));
  net.output(x);
  const auto rewritten = rewrite(net.program, {});
  EXPECT_EQ(count_targets(rewritten.program), (Counts{{"renkei.to_blocked.default", 1},
                                                      {"renkei.conv.default", 4},
                                                      {"renkei.to_plain.default", 1}}));
  EXPECT_EQ(rewritten.program.value(rewritten.program.outputs[0].value).sizes,
            (std::vector<Size>{net.batch, 16, 32, 32}));
}

TEST(Layout, ConvertsAnImageOnceForAllWhoNeedIt) {
  Sketch net;
  const ValueId x = net.image(16, 32);
  const ValueId a = net.conv("a", x, 16), b = net.conv("b", x, 16);
  net.output(net.binary("add", a, b));
  const auto rewritten = rewrite(net.program, {});
  EXPECT_EQ(count(rewritten.program, "renkei.to_blocked.default"), 1);
  EXPECT_EQ(count(rewritten.program, "renkei.to_plain.default"), 1);
}

TEST(Layout, NormalisationBetweenPlainOperationsStaysPlain) {
  Sketch net;
  const ValueId x = net.image(16, 32);
  const ValueId y = net.relu(net.batch_norm("bn", net.unary("cos", x)));
  net.output(net.unary("sin", y));
  const auto rewritten = rewrite(net.program, {.inputs_need_gradients = true});
  EXPECT_EQ(count(rewritten.program, "aten.batch_norm.default"), 1);
  EXPECT_EQ(count(rewritten.program, "aten.add_.Tensor"), 1);
  EXPECT_THAT(why_not(rewritten, "bn"), HasSubstr("conversions"));
}

TEST(Layout, FollowsElementWiseOperationsWithWhatIsBroadcast) {
  Sketch net;
  const ValueId x = net.image(3, 32);
  ValueId y = net.conv("a", x, 16);
  const ValueId scale = net.state("layer_scale", {16, 1, 1});
  const ValueId depth = net.input("keep", {net.batch, 1, 1, 1});
  y = net.binary("mul", y, scale);
  y = net.binary("mul", y, depth);
  const ValueId squeezed = net.unary("sigmoid", net.global_pool(y));
  y = net.binary("mul", y, squeezed);
  y = net.unary("hardswish", y);
  net.output(net.flatten(net.global_pool(net.conv("b", y, 8))));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_EQ(count_targets(program), (Counts{{"renkei.conv.default", 2},
                                            {"aten.reshape.default", 1},
                                            {"aten.unsqueeze.default", 1},
                                            {"aten.mul.Tensor", 3},
                                            {"aten.mean.dim", 2},
                                            {"aten.sigmoid.default", 1},
                                            {"aten.hardswish.default", 1},
                                            {"aten.flatten.using_ints", 1}}));
}

TEST(Layout, PutsChannelsTogetherWhereAllFillBlocks) {
  const auto conversions = [](int64_t channels) {
    Sketch net;
    const ValueId x = net.image(3, 32);
    const ValueId a = net.conv("a", x, 16), b = net.conv("b", x, channels);
    const ValueId both = net.op(
        "aten.cat.default", {{"tensors", List{Reference{a}, Reference{b}}}, {"dim", int64_t{1}}},
        {net.batch, 16 + channels, 32, 32});
    net.output(net.flatten(net.global_pool(net.conv("c", both, 8, 1))));
    return rewrite(net.program, {});
  };
  EXPECT_EQ(count(conversions(24).program, "renkei.to_plain.default"), 0);
  const auto odd = conversions(4);
  EXPECT_EQ(count(odd.program, "renkei.to_plain.default"), 1);
  EXPECT_EQ(count(odd.program, "aten.conv2d.default"), 2);
  EXPECT_THAT(why_not(odd, "b"), HasSubstr("4 output channels"));
  EXPECT_THAT(why_not(odd, "c"), HasSubstr("20 input channels"));
}

TEST(Layout, SaysWhyAConvolutionIsNotTaken) {
  Sketch net;
  ValueId x = net.image(3, 32);
  x = net.conv("stem", x, 16);
  set_argument(net.program.ops.back(), "dilation", List{int64_t{2}, int64_t{2}});
  x = net.conv("uneven", x, 16);
  set_argument(net.program.ops.back(), "stride", List{int64_t{1}, int64_t{2}});
  net.output(x);
  const auto rewritten = rewrite(net.program, {.general_convolutions = false});
  EXPECT_EQ(count(rewritten.program, "renkei.conv.default"), 0);
  EXPECT_THAT(why_not(rewritten, "stem"), HasSubstr("dilated"));
  EXPECT_THAT(why_not(rewritten, "uneven"), HasSubstr("strides differ"));
}

TEST(Layout, GeneralKernelsTakeGroupsDilationAndStridesThatDiffer) {
  Sketch net;
  ValueId x = net.conv("stem", net.image(3, 32), 16);
  x = net.relu_(net.conv("depthwise", x, 16, 3, 1, 16));
  set_argument(net.program.ops[1], "dilation", List{int64_t{2}, int64_t{2}});
  net.output(net.flatten(net.global_pool(x)));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_EQ(count(program, "renkei.conv.default"), 1);
  ASSERT_EQ(program.ops[1].target, "renkei.conv.general");
  const auto argument = [&](const char* name) { return *find_argument(program.ops[1], name); };
  EXPECT_EQ(argument("groups"), Argument(int64_t{16}));
  EXPECT_EQ(argument("dilation"), Argument(List{int64_t{2}, int64_t{2}}));
  EXPECT_EQ(argument("block"), Argument(int64_t{8}));
  EXPECT_EQ(argument("relu"), Argument(true));
  EXPECT_THAT(why_not(rewrite(net.program, {.general_convolutions = false}), "depthwise"),
              HasSubstr("16 groups"));
}

TEST(Layout, BlocksOfDifferentSizesAreNotPutTogether) {
  Sketch net;
  const ValueId x = net.image(3, 32);
  const ValueId a = net.conv("a", x, 32), b = net.conv("b", x, 24);
  const ValueId both = net.op("aten.cat.default",
                              {{"tensors", List{Reference{a}, Reference{b}}}, {"dim", int64_t{1}}},
                              {net.batch, 56, 32, 32});
  net.output(net.flatten(net.global_pool(net.conv("c", both, 16, 1))));
  const RewriteOptions options{.block = 16};
  EXPECT_EQ(count(rewrite(net.program, options).program, "renkei.to_plain.default"), 2);
}

TEST(Layout, PicturesGetAGradientFromTorchOnly) {
  Sketch net;
  net.output(net.conv("conv", net.image(3, 32), 16));
  EXPECT_EQ(count(rewrite(net.program, {}).program, "renkei.conv.default"), 1);
  EXPECT_THAT(why_not(rewrite(net.program, {.inputs_need_gradients = true}), "conv"),
              HasSubstr("gradient"));
}

TEST(Layout, PoolingWithCutOffWindowsStaysPlain) {
  for (const int64_t pixels : {31, 32}) {
    Sketch net;
    const ValueId x = net.conv("conv", net.image(3, pixels), 16);
    net.output(net.max_pool(x, 3, 2, 0, true));
    EXPECT_EQ(count(rewrite(net.program, {}).program, "renkei.pool.default"), pixels == 31 ? 1 : 0);
    EXPECT_EQ(count(rewrite(net.program, {.general_pooling = true}).program, "renkei.pool.general"),
              pixels == 31 ? 0 : 1);
  }
}

TEST(Layout, SizesAreReadWithoutAConversion) {
  Sketch net;
  const ValueId x = net.conv("conv", net.image(3, 32), 16);
  const ValueId size =
      net.op("aten.sym_size.int", {{"self", Reference{x}}, {"dim", int64_t{-1}}}, {});
  net.program.values.back().kind = ValueKind::integer;
  net.output(net.flatten(net.global_pool(x)));
  net.output(size);
  const auto program = rewrite(net.program, {}).program;
  EXPECT_EQ(count(program, "renkei.to_plain.default"), 0);
  const Op& ask = *std::find_if(program.ops.begin(), program.ops.end(),
                                [](const Op& op) { return op.target == "aten.sym_size.int"; });
  EXPECT_EQ(std::get<int64_t>(*find_argument(ask, "dim")), 3);
}

TEST(Layout, AnImageThatIsChangedThroughAViewStaysPlain) {
  Sketch net;
  const ValueId x = net.conv("conv", net.image(3, 32), 16);
  const ValueId part = net.op("aten.select.int",
                              {{"self", Reference{x}}, {"dim", int64_t{1}}, {"index", int64_t{0}}},
                              {net.batch, 32, 32});
  net.unary("relu_", part);
  net.output(net.conv("next", x, 16));
  const auto rewritten = rewrite(net.program, {});
  EXPECT_EQ(count(rewritten.program, "renkei.conv.default"), 0);
  EXPECT_EQ(count(rewritten.program, "aten.relu_.default"), 1);
  EXPECT_THAT(why_not(rewritten, "next"), HasSubstr("in place"));
}

TEST(Layout, CanBeSwitchedOff) {
  const auto rewritten = rewrite(resnet50().program, {.blocked_layout = false, .dense = false});
  EXPECT_EQ(count_targets(rewritten.program), count_targets(resnet50().program));
}

}  // namespace
}  // namespace renkei::rewrite
