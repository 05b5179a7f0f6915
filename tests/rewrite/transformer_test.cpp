#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/rewrite/sketch.h"

namespace renkei::rewrite {
namespace {

constexpr RewriteOptions kAll{.gelu = true,
                              .residuals = true,
                              .layer_norm = true,
                              .dropout = true,
                              .cross_entropy = true,
                              .embedding = true};

class Transformer : public Sketch {
 public:
  ValueId tokens(int64_t width) { return input("x", {batch, 128, width}); }
  ValueId gelu(ValueId x) { return unary("gelu", x); }
  ValueId dropout(ValueId x, double p = 0.1) {
    return op("aten.dropout.default", {{"input", Reference{x}}, {"p", p}, {"train", true}},
              std::vector<Size>(sizes(x)));
  }
  ValueId layer_norm(const std::string& name, ValueId x) {
    const Size width = sizes(x).back();
    const ValueId gamma = state(name + ".weight", {width}), beta = state(name + ".bias", {width});
    return op("aten.layer_norm.default",
              {{"input", Reference{x}},
               {"normalized_shape", List{width.number()}},
               {"weight", Reference{gamma}},
               {"bias", Reference{beta}},
               {"eps", 1e-6}},
              std::vector<Size>(sizes(x)), name);
  }
  ValueId with_number(const std::string& target, const char* name, ValueId x, Argument number) {
    return op(target, {{"self", Reference{x}}, {name, number}}, std::vector<Size>(sizes(x)));
  }
  // As GPT-2 writes it.
  ValueId composed_gelu(ValueId x) {
    const ValueId half = with_number("aten.mul.Tensor", "other", x, 0.5);
    const ValueId cube = with_number("aten.pow.Tensor_Scalar", "exponent", x, 3.0);
    const ValueId sum = binary("add", x, with_number("aten.mul.Tensor", "other", cube, 0.044715));
    const ValueId scaled = with_number("aten.mul.Tensor", "other", sum, 0.7978845608028654);
    return binary("mul", half, with_number("aten.add.Tensor", "other", unary("tanh", scaled), 1.0));
  }
};

const Op& find(const Program& program, const std::string& target) {
  return *std::find_if(program.ops.begin(), program.ops.end(),
                       [&](const Op& op) { return op.target == target; });
}

TEST(Transformer, TheFeedForwardHalfOfABlockIsThreeKernels) {
  Transformer net;
  const ValueId x = net.tokens(64);
  ValueId y = net.linear("up", net.layer_norm("norm", x), 256);
  y = net.dropout(net.linear("down", net.gelu(y), 64));
  net.output(net.binary("add", x, y));
  const auto program = rewrite(net.program, kAll).program;
  EXPECT_EQ(count_targets(program), (Counts{{"renkei.layer_norm.default", 1},
                                            {"renkei.linear.gelu", 1},
                                            {"renkei.linear.add", 1},
                                            {"aten.reshape.default", 5}}));
  EXPECT_EQ(*find_argument(find(program, "renkei.linear.add"), "dropout_p"), Argument(0.1));
  EXPECT_EQ(*find_argument(find(program, "renkei.linear.gelu"), "approximate"),
            Argument(std::string("none")));
}

TEST(Transformer, WithoutItsKernelsIsLeftToTorch) {
  Transformer net;
  net.output(net.gelu(net.linear("up", net.layer_norm("norm", net.tokens(64)), 256)));
  const auto program = rewrite(net.program, {}).program;
  EXPECT_EQ(count_targets(program), (Counts{{"aten.layer_norm.default", 1},
                                            {"renkei.linear.default", 1},
                                            {"aten.gelu.default", 1},
                                            {"aten.reshape.default", 2}}));
}

TEST(Transformer, AProductThatOthersReadKeepsItsTailOutside) {
  Transformer net;
  const ValueId y = net.linear("up", net.tokens(64), 64);
  net.output(net.gelu(y));
  net.output(net.dropout(y));
  const auto program = rewrite(net.program, kAll).program;
  EXPECT_EQ(count(program, "aten.gelu.default"), 1);
  EXPECT_EQ(count(program, "renkei.dropout.default"), 1);
}

TEST(Transformer, ADropoutIsNotMovedAcrossAnother) {
  Transformer net;
  const ValueId x = net.tokens(64);
  const ValueId y = net.dropout(net.linear("proj", x, 64));
  const ValueId other = net.dropout(net.unary("cos", x));
  net.output(net.binary("add", y, other));
  const auto program = rewrite(net.program, kAll).program;
  EXPECT_EQ(count(program, "renkei.linear.add"), 0);
  EXPECT_EQ(count(program, "renkei.dropout.default"), 2);
}

TEST(Transformer, ADenseLayerWithWeightsByInputIsAProductWithoutScales) {
  for (const double alpha : {1.0, 2.0}) {
    Transformer net;
    const ValueId x = net.input("x", {net.batch, 64});
    const ValueId weight = net.state("conv.weight", {64, 256}),
                  bias = net.state("conv.bias", {256});
    net.output(net.op("aten.addmm.default",
                      {{"self", Reference{bias}},
                       {"mat1", Reference{x}},
                       {"mat2", Reference{weight}},
                       {"alpha", alpha}},
                      {net.batch, 256}));
    const auto program = rewrite(net.program, kAll).program;
    EXPECT_EQ(count(program, "renkei.linear.input_major"), alpha == 1 ? 1 : 0);
    EXPECT_EQ(count(program, "aten.addmm.default"), alpha == 1 ? 0 : 1);
  }
}

TEST(Transformer, GeluWrittenOutIsOneOperation) {
  Transformer net;
  net.output(net.composed_gelu(net.linear("up", net.tokens(64), 256)));
  const auto program = rewrite(net.program, kAll).program;
  EXPECT_EQ(count_targets(program),
            (Counts{{"renkei.linear.gelu", 1}, {"aten.reshape.default", 2}}));
  EXPECT_EQ(*find_argument(find(program, "renkei.linear.gelu"), "approximate"),
            Argument(std::string("tanh")));
}

TEST(Transformer, GeluWrittenOutStaysWhereAPartIsReadOrAConstantDiffers) {
  for (const bool is_read : {false, true}) {
    Transformer net;
    net.output(net.composed_gelu(net.tokens(64)));
    for (Op& op : net.program.ops) {
      if (op.target == "aten.tanh.default" && is_read) net.output(op.outputs[0]);
      if (op.target == "aten.pow.Tensor_Scalar" && !is_read) set_argument(op, "exponent", 2.0);
    }
    EXPECT_EQ(count(rewrite(net.program, kAll).program, "aten.gelu.default"), 0);
  }
}

TEST(Transformer, CrossEntropyIsOurKernelUnlessLabelsAreSmoothed) {
  for (const double smoothing : {0.0, 0.1}) {
    Transformer net;
    const ValueId logits = net.input("logits", {net.batch, 50257});
    const ValueId target = net.input("target", {net.batch});
    net.program.values.back().dtype = DType::i64;
    net.output(net.op("aten.cross_entropy_loss.default",
                      {{"self", Reference{logits}},
                       {"target", Reference{target}},
                       {"weight", None{}},
                       {"reduction", int64_t{2}},
                       {"label_smoothing", smoothing}},
                      {}));
    EXPECT_EQ(count(rewrite(net.program, kAll).program, "renkei.cross_entropy.default"),
              smoothing == 0 ? 1 : 0);
  }
}

TEST(Transformer, EmbeddingsOfUsualGradientsAreOurKernel) {
  for (const bool sparse : {false, true}) {
    Transformer net;
    const ValueId weight = net.state("wte.weight", {50257, 64});
    const ValueId indices = net.input("indices", {net.batch, 128});
    net.program.values.back().dtype = DType::i64;
    net.output(net.op("aten.embedding.default",
                      {{"weight", Reference{weight}},
                       {"indices", Reference{indices}},
                       {"padding_idx", int64_t{-1}},
                       {"scale_grad_by_freq", false},
                       {"sparse", sparse}},
                      {net.batch, 128, 64}));
    EXPECT_EQ(count(rewrite(net.program, kAll).program, "renkei.embedding.default"),
              sparse ? 0 : 1);
  }
}

}  // namespace
}  // namespace renkei::rewrite
