#include "rewrite/mixed_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rewrite/sketch.h"

namespace renkei::rewrite {
namespace {

constexpr RewriteOptions kBf16{.blocked_layout = false, .dense = false, .bf16 = true};

const Op& op_of(const Program& program, const std::string& target) {
  return *std::find_if(program.ops.begin(), program.ops.end(),
                       [&](const Op& op) { return op.target == target; });
}

DType result(const Program& program, const std::string& target) {
  return program.value(op_of(program, target).outputs[0]).dtype;
}

DType argument(const Program& program, const std::string& target, const char* name) {
  const auto* given = find_argument(op_of(program, target), name);
  return program.value(std::get<Reference>(*given).value).dtype;
}

TEST(MixedPrecision, ProductsAreBf16AndLossesAreF32) {
  Sketch net;
  const ValueId x = net.input("x", {net.batch, 64});
  const ValueId target = net.input("target", {net.batch});
  net.program.values.back().dtype = DType::i64;
  const ValueId y = net.linear("fc", x, 10);
  net.output(net.op("aten.cross_entropy_loss.default",
                    {{"self", Reference{y}}, {"target", Reference{target}}}, {}));
  const auto program = rewrite(net.program, kBf16).program;
  for (const char* name : {"input", "weight", "bias"})
    EXPECT_EQ(argument(program, "aten.linear.default", name), DType::bf16);
  EXPECT_EQ(result(program, "aten.linear.default"), DType::bf16);
  EXPECT_EQ(argument(program, "aten.cross_entropy_loss.default", "self"), DType::f32);
  EXPECT_EQ(argument(program, "aten.cross_entropy_loss.default", "target"), DType::i64);
  EXPECT_EQ(count(program, "aten.to.dtype"), 4);
}

TEST(MixedPrecision, WhatFollowsTakesWhatComes) {
  Sketch net;
  const ValueId x = net.image(3, 32);
  const ValueId y = net.relu_(net.batch_norm("bn", net.conv("conv", x, 16)));
  net.output(net.unary("sigmoid", y));
  const auto program = rewrite(net.program, kBf16).program;
  EXPECT_EQ(result(program, "aten.batch_norm.default"), DType::bf16);
  EXPECT_EQ(argument(program, "aten.batch_norm.default", "weight"), DType::f32);
  EXPECT_EQ(argument(program, "aten.batch_norm.default", "running_mean"), DType::f32);
  EXPECT_EQ(result(program, "aten.relu_.default"), DType::bf16);
  EXPECT_EQ(result(program, "aten.sigmoid.default"), DType::bf16);
}

TEST(MixedPrecision, ImagesHaveTheirChannelsLastUntilTheirOrderMatters) {
  Sketch net;
  const ValueId x = net.image(3, 32);
  const ValueId first = net.relu_(net.batch_norm("bn", net.conv("conv", x, 16)));
  const ValueId second = net.conv("second", net.binary("add", first, first), 16);
  net.output(net.linear("fc", net.flatten(net.max_pool(second, 2, 2)), 10));
  net.output(second);
  const auto program = rewrite(net.program, kBf16).program;
  std::vector<std::string> forms;
  for (const Op& op : program.ops)
    if (op.target == "aten.contiguous.default")
      forms.push_back(std::get<Word>(*find_argument(op, "memory_format")).text);
  // The image, and the weights of each convolution; then for flatten, and an output.
  EXPECT_THAT(forms, testing::ElementsAre("channels_last", "channels_last", "channels_last",
                                          "contiguous_format", "contiguous_format"));
  const Op& flatten = op_of(program, "aten.flatten.using_ints");
  const auto& given = std::get<Reference>(*find_argument(flatten, "self"));
  EXPECT_THAT(program.value(given.value).name, testing::HasSubstr("contiguous_format"));
}

TEST(MixedPrecision, SumsArePromotedByTensorsThatHaveDimensions) {
  Sketch net;
  const ValueId x = net.input("x", {net.batch, 64});
  const ValueId y = net.linear("fc", x, 64);
  const ValueId scalar = net.state("scale", {});
  const ValueId scaled = net.binary("mul", y, scalar);
  const ValueId sum = net.binary("add", scaled, x);
  net.output(sum);
  const auto program = rewrite(net.program, kBf16).program;
  EXPECT_EQ(result(program, "aten.mul.Tensor"), DType::bf16);
  EXPECT_EQ(result(program, "aten.add.Tensor"), DType::f32);
}

TEST(MixedPrecision, OutputsKeepTheirDtype) {
  Sketch net;
  net.output(net.linear("fc", net.input("x", {net.batch, 64}), 10));
  const auto program = rewrite(net.program, kBf16).program;
  EXPECT_EQ(program.value(program.outputs[0].value).dtype, DType::f32);
  EXPECT_EQ(program.ops.back().target, "aten.to.dtype");
}

TEST(MixedPrecision, AWeightIsCastOnceForAllItsUses) {
  Sketch net;
  const ValueId x = net.input("x", {net.batch, 64});
  const ValueId y = net.linear("fc", x, 64);
  Op again = net.program.ops.back();
  set_argument(again, "input", Reference{y});
  again.outputs = {net.value("again", {net.batch, 64})};
  net.program.ops.push_back(again);
  net.output(again.outputs[0]);
  // x, the weight, the bias, and the output.
  EXPECT_EQ(count(rewrite(net.program, kBf16).program, "aten.to.dtype"), 4);
}

TEST(MixedPrecision, AValueThatIsWrittenIsCastForEachUse) {
  Sketch net;
  const ValueId x = net.input("x", {net.batch, 64});
  const ValueId a = net.linear("a", x, 64);
  net.op("aten.add_.Tensor", {{"self", Reference{x}}, {"other", 1.0}}, {net.batch, 64});
  const ValueId b = net.linear("b", x, 64);
  net.output(net.binary("add", a, b));
  const auto program = rewrite(net.program, kBf16).program;
  const auto input_of = [&](const std::string& module) {
    for (const Op& op : program.ops)
      if (op.module == module && op.target == "aten.linear.default")
        return std::get<Reference>(*find_argument(op, "input")).value;
    return kNoValue;
  };
  EXPECT_NE(input_of("a"), input_of("b"));
}

TEST(MixedPrecision, ConcatenationTakesTheWidest) {
  Sketch net;
  const ValueId x = net.input("x", {net.batch, 64});
  const ValueId y = net.linear("fc", x, 64);
  net.output(net.op("aten.cat.default",
                    {{"tensors", List{Reference{x}, Reference{y}}}, {"dim", int64_t{1}}},
                    {net.batch, 128}));
  const auto program = rewrite(net.program, kBf16).program;
  EXPECT_EQ(result(program, "aten.cat.default"), DType::f32);
  const auto& tensors =
      std::get<List>(*find_argument(op_of(program, "aten.cat.default"), "tensors"));
  for (const Argument& tensor : tensors)
    EXPECT_EQ(program.value(std::get<Reference>(tensor).value).dtype, DType::f32);
}

TEST(MixedPrecision, ACastOfTheNetworkIsKept) {
  Sketch net;
  const ValueId y = net.linear("fc", net.input("x", {net.batch, 64}), 64);
  const ValueId f32 =
      net.op("aten.to.dtype", {{"self", Reference{y}}, {"dtype", DType::f32}}, {net.batch, 64});
  net.output(net.unary("cos", f32));
  EXPECT_EQ(result(rewrite(net.program, kBf16).program, "aten.cos.default"), DType::f32);
}

TEST(MixedPrecision, OperatorsOfOtherLibrariesGetWhatTheyGot) {
  Sketch net;
  const ValueId y = net.linear("fc", net.input("x", {net.batch, 64}), 64);
  net.output(net.op("mylib.special.default", {{"x", Reference{y}}}, {net.batch, 64}));
  EXPECT_EQ(argument(rewrite(net.program, kBf16).program, "mylib.special.default", "x"),
            DType::f32);
}

}  // namespace
}  // namespace renkei::rewrite
