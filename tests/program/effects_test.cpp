#include "program/effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace renkei::program {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Op op_of(std::string target, std::vector<NamedArgument> arguments) {
  return {.target = std::move(target), .arguments = std::move(arguments), .outputs = {0}};
}

Op batch_norm(bool training) {
  return op_of("aten.batch_norm.default", {{"input", Reference{1}},
                                           {"weight", None{}},
                                           {"running_mean", Reference{2}},
                                           {"running_var", Reference{3}},
                                           {"training", training}});
}

TEST(Target, HasALibraryANameAndAnOverload) {
  const Target all = parts_of("aten.add_.Tensor");
  EXPECT_EQ(all.library, "aten");
  EXPECT_EQ(all.name, "add_");
  EXPECT_EQ(all.overload, "Tensor");
  EXPECT_EQ(parts_of("operator.mul").name, "mul");
  EXPECT_EQ(parts_of("alone").name, "alone");
}

TEST(Effects, OfInPlaceOperationsReachTheirFirstArgument) {
  const Op add = op_of("aten.add_.Tensor", {{"self", Reference{4}}, {"other", Reference{5}}});
  EXPECT_THAT(writes(add), ElementsAre("self"));
  EXPECT_THAT(written_values(add), ElementsAre(4));
  EXPECT_EQ(alias_of(add), "self");
  EXPECT_THAT(writes(op_of("other.update_.default", {{"state", Reference{4}}})),
              ElementsAre("state"));
  EXPECT_THAT(writes(op_of("aten.__and__.Tensor", {{"self", Reference{4}}})), IsEmpty());
  EXPECT_THAT(
      writes(op_of("aten._foreach_zero_.default", {{"self", List{Reference{1}, Reference{2}}}})),
      ElementsAre("self"));
}

TEST(Effects, OfNormalisationReachTheStatisticsInTraining) {
  EXPECT_THAT(writes(batch_norm(true)), ElementsAre("running_mean", "running_var"));
  EXPECT_THAT(written_values(batch_norm(true)), ElementsAre(2, 3));
  EXPECT_THAT(writes(batch_norm(false)), IsEmpty());
  Op without = batch_norm(true);
  set_argument(without, "running_mean", None{});
  set_argument(without, "running_var", None{});
  EXPECT_THAT(writes(without), IsEmpty());
  EXPECT_THAT(writes(op_of("renkei.batch_norm.default", {{"input", Reference{1}},
                                                         {"running_mean", Reference{2}},
                                                         {"running_variance", Reference{3}},
                                                         {"batches", Reference{4}}})),
              ElementsAre("running_mean", "running_variance", "batches"));
}

TEST(Effects, NameTheArgumentWhoseMemoryIsShared) {
  EXPECT_EQ(alias_of(op_of("aten.view.default", {{"self", Reference{1}}})), "self");
  EXPECT_EQ(alias_of(op_of("aten.dropout.default", {{"input", Reference{1}}})), "input");
  EXPECT_EQ(alias_of(op_of("aten.relu.default", {{"self", Reference{1}}})), "");
  EXPECT_EQ(alias_of(op_of("aten.atleast_1d.Sequence", {{"tensors", List{Reference{1}}}})),
            "tensors");
  EXPECT_EQ(alias_of(op_of("operator.getitem", {{"a", Reference{1}}})), "a");
  EXPECT_TRUE(is_view(op_of("aten.view.default", {{"self", Reference{1}}})));
  EXPECT_FALSE(is_view(op_of("aten.dropout.default", {{"input", Reference{1}}})));
}

TEST(Effects, SayWhoDrawsGivenItsArguments) {
  const auto dropout = [](double p, bool train) {
    return draws(
        op_of("aten.dropout.default", {{"input", Reference{1}}, {"p", p}, {"train", train}}));
  };
  EXPECT_TRUE(dropout(0.5, true));
  EXPECT_FALSE(dropout(0.5, false));
  EXPECT_FALSE(dropout(0, true));
  const auto attention = [](double p) {
    return draws(op_of("aten.scaled_dot_product_attention.default",
                       {{"query", Reference{1}}, {"dropout_p", p}}));
  };
  EXPECT_TRUE(attention(0.1));
  EXPECT_FALSE(attention(0));
  const auto lstm = [](double p, int64_t layers, bool train) {
    return draws(
        op_of("aten.lstm.input",
              {{"input", Reference{1}}, {"num_layers", layers}, {"dropout", p}, {"train", train}}));
  };
  EXPECT_TRUE(lstm(0.1, 2, true));
  EXPECT_FALSE(lstm(0.1, 1, true));
  EXPECT_FALSE(lstm(0, 2, true));
  EXPECT_FALSE(lstm(0.1, 2, false));
  EXPECT_TRUE(draws(op_of("aten.bernoulli_.float", {{"self", Reference{1}}, {"p", 0.9}})));
  EXPECT_TRUE(draws(op_of("aten.rrelu.default", {{"self", Reference{1}}, {"training", true}})));
  EXPECT_FALSE(draws(op_of("aten.rrelu.default", {{"self", Reference{1}}})));
  EXPECT_FALSE(draws(op_of("aten.relu.default", {{"self", Reference{1}}})));
}

TEST(Effects, SayThatComputedSettingsMayDraw) {
  EXPECT_TRUE(draws(op_of("aten.dropout.default",
                          {{"input", Reference{1}}, {"p", Reference{2}}, {"train", true}})));
}

TEST(Effects, SayWhereGradientsStop) {
  EXPECT_TRUE(differentiable(op_of("aten.conv2d.default", {})));
  EXPECT_FALSE(differentiable(op_of("aten.detach.default", {})));
  EXPECT_FALSE(differentiable(op_of("aten.argmax.default", {})));
  EXPECT_FALSE(differentiable(op_of("aten.gt.Scalar", {})));
  EXPECT_FALSE(differentiable(op_of("operator.mul", {})));
  Op op = op_of("aten.relu.default", {});
  op.no_grad = true;
  EXPECT_FALSE(differentiable(op));
}

}  // namespace
}  // namespace renkei::program
