// The structure of programs with a loss; eager_test.py compares their numbers with PyTorch's.
#include "networks/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "networks/layers.h"
#include "tests/base/thrown_error.h"

namespace renkei::networks {
namespace {

using program::DType;
using program::Program;
using program::Size;
using test::thrown_error;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> targets(const Program& program) {
  std::vector<std::string> all;
  for (const program::Op& op : program.ops) all.push_back(op.target);
  return all;
}

std::vector<std::string> port_names(const std::vector<program::Port>& ports) {
  std::vector<std::string> names;
  for (const program::Port& port : ports) names.push_back(port.name);
  return names;
}

// One layer, then its outputs, each of this shape behind the batch.
Program layer_with_outputs(const std::vector<std::vector<int64_t>>& outputs) {
  Builder builder("net");
  const ValueId input = builder.input("x", DType::f32, {builder.batch(), 4});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = "head" + std::to_string(i);
    int64_t size = 1;
    std::vector<Size> sizes{builder.batch()};
    for (const int64_t side : outputs[i]) {
      size *= side;
      sizes.emplace_back(side);
    }
    const ValueId row = linear(builder, input, name, {.out = size});
    builder.output(name, outputs[i].size() == 1 ? row : builder.view(row, sizes));
  }
  return builder.finish();
}

TEST(TrainingProgram, HasItsInputsAndTheTargetAndGivesTheLoss) {
  const Program made = training_program(layer_with_outputs({{7}}), {});
  EXPECT_THAT(port_names(made.inputs), ElementsAre("x", "target"));
  EXPECT_THAT(port_names(made.outputs), ElementsAre("loss"));
  EXPECT_THAT(targets(made), ElementsAre("aten.linear.default", "aten.cross_entropy_loss.default"));
  EXPECT_TRUE(made.value(made.outputs[0].value).sizes.empty());
  const program::Value& target = made.value(made.inputs[1].value);
  EXPECT_EQ(target.dtype, DType::i64);
  EXPECT_EQ(target.sizes, std::vector<Size>{Size::expression("batch")});
}

TEST(TrainingProgram, CountsAuxiliaryHeadsOfTheSameShape) {
  const Program made =
      training_program(layer_with_outputs({{7}, {7}, {5}}), {.auxiliary_weight = 0.3});
  EXPECT_THAT(
      targets(made),
      ElementsAre("aten.linear.default", "aten.linear.default", "aten.cross_entropy_loss.default",
                  "aten.cross_entropy_loss.default", "aten.mul.Tensor", "aten.add.Tensor"));
  const program::Argument* weight = find_argument(made.ops[4], "other");
  EXPECT_EQ(std::get<double>(*weight), 0.3);
}

TEST(TrainingProgram, SmoothsLabels) {
  const Program made = training_program(layer_with_outputs({{7}}),
                                        {.objective = Objective::smoothed_classification});
  EXPECT_EQ(std::get<double>(*find_argument(made.ops[1], "label_smoothing")), kLabelSmoothing);
  EXPECT_EQ(std::get<int64_t>(*find_argument(made.ops[1], "reduction")), 2);
}

TEST(TrainingProgram, TakesLabelsOfPixelsAsARow) {
  const Program made =
      training_program(layer_with_outputs({{5, 3, 4}}), {.target = {.label = false, .size = 12}});
  EXPECT_THAT(targets(made),
              ElementsAre("aten.linear.default", "aten.view.default", "aten.flatten.using_ints",
                          "aten.transpose.int", "aten.reshape.default", "aten.flatten.using_ints",
                          "aten.cross_entropy_loss.default", "aten.ne.Scalar",
                          "aten.sum.dim_IntList", "aten.clamp_min.default", "aten.view.default",
                          "aten.sum.dim_IntList", "aten.div.Tensor", "aten.sum.default"));
}

TEST(TrainingProgram, TakesNumbersOfTheTypeOfItsOutput) {
  Builder builder("exact");
  const ValueId input = builder.input("x", DType::f64, {builder.batch(), 4});
  builder.output("y", builder.relu(input));
  const Program made = training_program(builder.finish(), {.objective = Objective::regression,
                                                           .target = {.label = false, .size = 4}});
  EXPECT_EQ(made.value(made.inputs[1].value).dtype, DType::f64);
}

TEST(TrainingProgram, RefusesTargetsThatDoNotFit) {
  const auto message = [](const std::vector<int64_t>& output, const LossOptions& options) {
    return thrown_error([&] { training_program(layer_with_outputs({output}), options); }).message;
  };
  const Target row{.label = false, .size = 12};
  EXPECT_THAT(message({7}, {.target = row}), HasSubstr("batch × 7"));
  EXPECT_THAT(message({5, 3}, {.target = row}), HasSubstr("a row of 12 numbers"));
  EXPECT_THAT(message({5, 3}, {}), HasSubstr("one label per sample"));
  EXPECT_THAT(message({7}, {.objective = Objective::regression}), HasSubstr("labels"));
  EXPECT_THAT(message({7}, {.objective = Objective::regression, .target = row}), HasSubstr("12"));
}

TEST(EvaluationProgram, CountsLabelsAndLeavesAuxiliaryHeadsOut) {
  const Program made =
      evaluation_program(layer_with_outputs({{7}, {7}}), {.auxiliary_weight = 0.3});
  EXPECT_THAT(port_names(made.outputs), ElementsAre("loss", "correct"));
  EXPECT_EQ(made.value(made.outputs[1].value).dtype, DType::i64);
  EXPECT_THAT(targets(made),
              ElementsAre("aten.linear.default", "aten.cross_entropy_loss.default",
                          "aten.argmax.default", "aten.eq.Tensor", "aten.sum.default"));
}

// A network that computes its loss from a target of this type and shape, behind the batch.
Program own_loss_network(DType dtype, const std::vector<int64_t>& target, bool per_sample) {
  Builder builder("own");
  const ValueId input = builder.input("x", DType::f32, {builder.batch(), 4});
  std::vector<Size> sizes{builder.batch()};
  for (const int64_t side : target) sizes.emplace_back(side);
  const ValueId labels = builder.input("labels", dtype, sizes);
  const ValueId scores = linear(builder, input, "fc", {.out = 4});
  const ValueId rows = target.empty() ? labels : builder.flatten(builder.to(labels, DType::f32), 1);
  if (target.empty())
    builder.output(
        "loss",
        builder.cross_entropy_loss(
            scores, rows, per_sample ? Builder::Reduction::none : Builder::Reduction::mean, 0));
  else
    builder.output("loss", builder.mse_loss(scores, rows, Builder::Reduction::mean));
  return builder.finish();
}

TEST(OwnLoss, OfOneNumberIsTheMeanOfTheSamples) {
  const Program made =
      training_program(own_loss_network(DType::i64, {}, false), {.objective = Objective::own_loss});
  EXPECT_THAT(targets(made),
              ElementsAre("aten.linear.default", "aten.cross_entropy_loss.default",
                          "aten.sum.default", "aten.sym_size.int", "aten.mul.Tensor"));
  EXPECT_THAT(port_names(made.inputs), ElementsAre("x", "labels"));
}

TEST(OwnLoss, OfOneNumberPerSampleIsSummed) {
  const Program made =
      training_program(own_loss_network(DType::i64, {}, true), {.objective = Objective::own_loss});
  EXPECT_EQ(made.ops.back().target, "aten.sum.default");
  const Program evaluated = evaluation_program(own_loss_network(DType::i64, {}, true),
                                               {.objective = Objective::own_loss});
  EXPECT_THAT(port_names(evaluated.outputs), ElementsAre("loss"));
}

TEST(OwnLoss, TakesItsInputsAsTheyAre) {
  const Program made = training_program(own_loss_network(DType::i64, {2, 2}, false),
                                        {.objective = Objective::own_loss});
  ASSERT_THAT(port_names(made.inputs), ElementsAre("x", "labels"));
  const program::Value& target = made.value(made.inputs[1].value);
  EXPECT_EQ(target.dtype, DType::i64);
  EXPECT_EQ(target.sizes, (std::vector<Size>{Size::expression("batch"), 2, 2}));
}

TEST(OwnLoss, IsOneNumberOrOnePerSample) {
  EXPECT_THAT(thrown_error([] {
                training_program(layer_with_outputs({{7}}), {.objective = Objective::own_loss});
              }).message,
              HasSubstr("batch × 7"));
}

}  // namespace
}  // namespace renkei::networks
