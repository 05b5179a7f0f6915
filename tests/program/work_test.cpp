#include "program/work.h"

#include <gtest/gtest.h>

#include "tests/program/sample_program.h"

namespace renkei::program {
namespace {

struct Given {
  std::string name;
  std::vector<Size> sizes;
};

// The work of an operation on tensors of these sizes, for a batch of 2.
Work work(std::string target, const std::vector<Given>& given, std::vector<Size> made,
          std::vector<NamedArgument> settings = {}) {
  Program program{.symbols = {{.name = "batch", .batch = true}}};
  Op op{.target = std::move(target), .arguments = {}, .outputs = {}};
  for (const Given& one : given) {
    program.values.push_back({.name = one.name, .sizes = one.sizes});
    op.arguments.push_back({one.name, Reference{static_cast<ValueId>(program.values.size()) - 1}});
  }
  for (NamedArgument& setting : settings) op.arguments.push_back(std::move(setting));
  program.values.push_back({.name = "made", .sizes = std::move(made)});
  op.outputs = {static_cast<ValueId>(program.values.size()) - 1};
  return work_of(program, op, {{"batch", 2}});
}

const Size kBatch = Size::expression("batch");

TEST(Work, OfAConvolutionIsItsMultiplicationsAndAdditions) {
  const Work conv =
      work("aten.conv2d.default", {{"input", {kBatch, 64, 56, 56}}, {"weight", {128, 64, 3, 3}}},
           {kBatch, 128, 28, 28});
  EXPECT_EQ(conv.flops, 2.0 * (2 * 128 * 28 * 28) * (64 * 9));
  EXPECT_EQ(conv.products, conv.flops);
  EXPECT_EQ(conv.made_bytes, 4 * 2 * 128 * 28 * 28);
  EXPECT_EQ(conv.traffic_bytes, 4.0 * (2 * 64 * 56 * 56 + 128 * 64 * 9 + 2 * 128 * 28 * 28));
  const Work grouped =
      work("aten.conv2d.default", {{"input", {kBatch, 64, 8, 8}}, {"weight", {64, 1, 3, 3}}},
           {kBatch, 64, 8, 8});
  EXPECT_EQ(grouped.flops, 2.0 * (2 * 64 * 8 * 8) * 9);
  const Work ours =
      work("renkei.conv.default", {{"input", {kBatch, 8, 56, 56, 8}}, {"weight", {128, 64, 3, 3}}},
           {kBatch, 16, 28, 28, 8});
  EXPECT_EQ(ours.flops, conv.flops);
}

TEST(Work, OfATransposedConvolutionFollowsItsInput) {
  const double flops = 2.0 * (2 * 16 * 5 * 5) * (8 * 4);
  EXPECT_EQ(work("aten.conv_transpose2d.input",
                 {{"input", {kBatch, 16, 5, 5}}, {"weight", {16, 8, 2, 2}}}, {kBatch, 8, 10, 10})
                .flops,
            flops);
  EXPECT_EQ(
      work("aten.convolution.default", {{"input", {kBatch, 16, 5, 5}}, {"weight", {16, 8, 2, 2}}},
           {kBatch, 8, 10, 10}, {{"transposed", true}})
          .flops,
      flops);
}

TEST(Work, OfMatrixProductsIsThatOfTheirInnerSide) {
  EXPECT_EQ(
      work("aten.linear.default", {{"input", {kBatch, 10}}, {"weight", {30, 10}}}, {kBatch, 30})
          .products,
      2.0 * 2 * 30 * 10);
  EXPECT_EQ(work("renkei.linear_relu.default", {{"input", {kBatch, 10}}, {"weight", {30, 10}}},
                 {kBatch, 30})
                .products,
            2.0 * 2 * 30 * 10);
  EXPECT_EQ(work("aten.addmm.default", {{"self", {30}}, {"mat1", {kBatch, 10}}, {"mat2", {10, 30}}},
                 {kBatch, 30})
                .products,
            2.0 * 2 * 30 * 10);
  EXPECT_EQ(work("aten.mm.default", {{"self", {5, 6}}, {"mat2", {6, 7}}}, {5, 7}).products,
            2.0 * 5 * 6 * 7);
  EXPECT_EQ(
      work("aten.matmul.default", {{"self", {kBatch, 5, 6}}, {"other", {6, 7}}}, {kBatch, 5, 7})
          .products,
      2.0 * 2 * 5 * 6 * 7);
  EXPECT_EQ(
      work("aten.baddbmm.default",
           {{"self", {1}}, {"batch1", {kBatch, 5, 6}}, {"batch2", {kBatch, 6, 7}}}, {kBatch, 5, 7})
          .products,
      2.0 * 2 * 5 * 6 * 7);
}

TEST(Work, OfAttentionIsThatOfItsTwoProducts) {
  EXPECT_EQ(work("aten.scaled_dot_product_attention.default",
                 {{"query", {kBatch, 12, 128, 64}},
                  {"key", {kBatch, 12, 100, 64}},
                  {"value", {kBatch, 12, 100, 32}}},
                 {kBatch, 12, 128, 32})
                .products,
            2.0 * (2 * 12) * 128 * 100 * (64 + 32));
}

TEST(Work, OfAnEinsumOfTwoIsThatOfAllItsLetters) {
  const auto einsum = [](const char* equation) {
    Program program;
    program.values = {{.name = "a", .sizes = {2, 3, 4}},
                      {.name = "b", .sizes = {2, 4, 5}},
                      {.name = "made", .sizes = {2, 3, 5}}};
    const Op op{.target = "aten.einsum.default",
                .arguments = {{"equation", std::string(equation)},
                              {"tensors", List{Reference{0}, Reference{1}}}},
                .outputs = {2}};
    return work_of(program, op, {}).flops;
  };
  EXPECT_EQ(einsum("bij, bjk -> bik"), 2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(einsum("...ij,...jk->...ik"), 2.0 * 3 * 5);
}

TEST(Work, OfARecurrentLayerIsThatOfItsWeightsAtEachPlace) {
  Program program;
  program.values = {{.name = "x", .sizes = {7, 2, 10}},
                    {.name = "w", .sizes = {80, 10}},
                    {.name = "u", .sizes = {80, 20}},
                    {.name = "b", .sizes = {80}},
                    {.name = "y", .sizes = {7, 2, 20}}};
  const Op op{.target = "aten.lstm.input",
              .arguments = {{"input", Reference{0}},
                            {"params", List{Reference{1}, Reference{2}, Reference{3}}}},
              .outputs = {4, kNoValue, kNoValue}};
  EXPECT_EQ(work_of(program, op, {}).products, 2.0 * 14 * 80 * 30);
}

TEST(Work, OfOthersIsOneForEachValue) {
  const Work relu = work("aten.relu.default", {{"self", {kBatch, 100}}}, {kBatch, 100});
  EXPECT_EQ(relu.flops, 200);
  EXPECT_EQ(relu.products, 0);
  EXPECT_EQ(relu.traffic_bytes, 1600);
  EXPECT_EQ(relu.made_bytes, 800);
}

TEST(Work, InPlaceMakesNothing) {
  const Work relu = work("aten.relu_.default", {{"self", {kBatch, 100}}}, {kBatch, 100});
  EXPECT_EQ(relu.flops, 200);
  EXPECT_EQ(relu.traffic_bytes, 1600);
  EXPECT_EQ(relu.made_bytes, 0);
}

TEST(Work, OfViewsAndOfDropoutThatDropsNothingIsNone) {
  for (const char* target : {"aten.view.default", "aten.permute.default", "aten.slice.Tensor"}) {
    const Work view = work(target, {{"self", {kBatch, 100}}}, {kBatch, 100});
    EXPECT_EQ(view.flops + view.traffic_bytes + static_cast<double>(view.made_bytes), 0) << target;
  }
  EXPECT_EQ(work("aten.dropout.default", {{"input", {kBatch, 9}}}, {kBatch, 9},
                 {{"p", 0.5}, {"train", false}})
                .made_bytes,
            0);
  EXPECT_EQ(work("aten.dropout.default", {{"input", {kBatch, 9}}}, {kBatch, 9},
                 {{"p", 0.5}, {"train", true}})
                .made_bytes,
            72);
}

TEST(Work, OfAnEmbeddingReadsTheRowsThatItGives) {
  EXPECT_EQ(work("aten.embedding.default", {{"weight", {50000, 8}}, {"indices", {kBatch, 3}}},
                 {kBatch, 3, 8})
                .traffic_bytes,
            4.0 * (2 * 3 * 8 * 2 + 2 * 3));
}

TEST(Work, IsCountedForAWholeProgram) {
  const Program program = sample_program();
  double products = 0;
  for (const Op& op : program.ops)
    products += work_of(program, op, with_batch(program, 1)).products;
  EXPECT_EQ(products, 2.0 * 4 * 8 * 8 * 27);
}

}  // namespace
}  // namespace renkei::program
