#include "program/modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "program/effects.h"
#include "program/memory.h"
#include "tests/program/sample_program.h"

namespace renkei::program {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> targets(const Program& program) {
  std::vector<std::string> all;
  for (const Op& op : program.ops) all.push_back(op.target);
  return all;
}

// The sample with an operation between its relu_ and its dropout.
Program with_op(std::string target, std::vector<NamedArgument> arguments) {
  Program program = sample_program();
  const ValueId active = program.ops[3].outputs[0];
  program.values.push_back(program.values[static_cast<size_t>(active)]);
  const auto made = static_cast<ValueId>(program.values.size()) - 1;
  arguments.insert(arguments.begin(), {"self", Reference{active}});
  program.ops.insert(program.ops.begin() + 4, {.target = std::move(target),
                                               .arguments = std::move(arguments),
                                               .outputs = {made},
                                               .module = "extra",
                                               .source = "net.py:7 in forward"});
  set_argument(program.ops[5], "input", Reference{made});
  return program;
}

std::string evaluation_error(const Program& program) {
  try {
    evaluation(program);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::data);
    EXPECT_THAT(error.hint, HasSubstr("save an evaluation program too"));
    return error.message;
  }
  return "no error";
}

TEST(Evaluation, TakesRunningStatisticsAndDropsNothing) {
  const Program training = sample_program();
  const Program program = evaluation(training);
  check(program, "evaluation");
  EXPECT_THAT(targets(program), ElementsAre("aten.conv2d.default", "aten.batch_norm.default",
                                            "aten.relu_.default", "aten.flatten.using_ints"));
  EXPECT_FALSE(std::get<bool>(*find_argument(program.ops[1], "training")));
  EXPECT_EQ(references(program.ops[3]), program.ops[2].outputs);
  EXPECT_EQ(program.state.size(), training.state.size());
  EXPECT_EQ(targets(training).size(), 6U);
}

TEST(Evaluation, OfAnEvaluationIsTheSame) {
  const Program once = evaluation(sample_program());
  EXPECT_EQ(targets(evaluation(once)), targets(once));
}

TEST(Evaluation, KeepsTheStatisticsOfTheBatchWhereThereAreNoOthers) {
  Program program = sample_program();
  set_argument(program.ops[2], "running_mean", None{});
  set_argument(program.ops[2], "running_var", None{});
  EXPECT_TRUE(std::get<bool>(*find_argument(evaluation(program).ops[1], "training")));
}

TEST(Evaluation, GivesOutputsThatWereDroppedOut) {
  Program program = sample_program();
  program.outputs.push_back({"dropped", program.ops[4].outputs[0]});
  const Program evaluated = evaluation(program);
  EXPECT_EQ(evaluated.outputs[1].value, evaluated.ops[2].outputs[0]);
}

TEST(Evaluation, SwitchesAttentionRreluAndRecurrentLayers) {
  const Program attention =
      evaluation(with_op("aten.scaled_dot_product_attention.default", {{"dropout_p", 0.1}}));
  EXPECT_EQ(std::get<double>(*find_argument(attention.ops[3], "dropout_p")), 0.0);
  const Program rrelu = evaluation(with_op("aten.rrelu.default", {{"training", true}}));
  EXPECT_FALSE(std::get<bool>(*find_argument(rrelu.ops[3], "training")));
  const Program lstm = evaluation(
      with_op("aten.lstm.input", {{"dropout", 0.1}, {"num_layers", int64_t{2}}, {"train", true}}));
  EXPECT_FALSE(std::get<bool>(*find_argument(lstm.ops[3], "train")));
}

TEST(Evaluation, SwitchesInstanceNormOnlyWhereItHasStatistics) {
  const auto setting = [](Argument mean) {
    const Program program =
        evaluation(with_op("aten.instance_norm.default",
                           {{"running_mean", std::move(mean)}, {"use_input_stats", true}}));
    return std::get<bool>(*find_argument(program.ops[3], "use_input_stats"));
  };
  EXPECT_TRUE(setting(None{}));
  EXPECT_FALSE(setting(Reference{3}));
}

TEST(Evaluation, DropsTheMomentumThatWasComputedFromTheCount) {
  Program program = sample_program();
  program.values.push_back({.name = "momentum", .kind = ValueKind::real});
  const auto momentum = static_cast<ValueId>(program.values.size()) - 1;
  program.ops.insert(program.ops.begin() + 2,
                     {.target = "aten.item.default",
                      .arguments = {{"self", Reference{program.ops[1].outputs[0]}}},
                      .outputs = {momentum}});
  set_argument(program.ops[3], "momentum", Reference{momentum});
  EXPECT_EQ(evaluation(program).ops.size(), 4U);
}

TEST(Evaluation, RefusesNumbersThatAreDrawnOtherwise) {
  EXPECT_THAT(evaluation_error(with_op("aten.bernoulli.p", {{"p", 0.9}})),
              AllOf(HasSubstr("aten.bernoulli.p in the layer extra (net.py:7 in forward)"),
                    HasSubstr("draws random numbers")));
}

TEST(Evaluation, RefusesStateThatIsChangedOtherwise) {
  Program program = sample_program();
  program.ops.push_back({.target = "aten.mul_.Scalar",
                         .arguments = {{"self", Reference{program.state[3].value}}, {"other", 0.9}},
                         .outputs = {kNoValue}});
  EXPECT_THAT(evaluation_error(program), HasSubstr("changes norm.running_mean"));
}

TEST(DeadOps, AreThoseThatNobodyNeeds) {
  Program program = with_op("aten.relu.default", {});
  set_argument(program.ops[5], "input", Reference{program.ops[3].outputs[0]});
  remove_dead_ops(program);
  EXPECT_EQ(targets(program), targets(sample_program()));
}

TEST(DeadOps, AreNotThoseThatChangeState) {
  Program program = sample_program();
  const ValueId mean = program.state[3].value;
  program.values.push_back({.name = "view", .sizes = {2, 2}});
  const auto view = static_cast<ValueId>(program.values.size()) - 1;
  program.ops.push_back(
      {.target = "aten.view.default", .arguments = {{"self", Reference{mean}}}, .outputs = {view}});
  program.ops.push_back({.target = "aten.zero_.default",
                         .arguments = {{"self", Reference{view}}},
                         .outputs = {kNoValue}});
  EXPECT_THAT(changed_state(program).back(), ElementsAre(&program.state[3]));
  remove_dead_ops(program);
  EXPECT_EQ(program.ops.size(), 8U);
}

TEST(DeadOps, AreNotThoseThatChangeWhatIsUsedLater) {
  Program program = sample_program();
  program.ops[3].outputs = {kNoValue};  // relu_, whose argument goes on
  set_argument(program.ops[4], "input", Reference{program.ops[2].outputs[0]});
  remove_dead_ops(program);
  EXPECT_EQ(program.ops.size(), 6U);
  // Changed after the last use, it matters to nobody.
  program.ops.push_back({.target = "aten.zero_.default",
                         .arguments = {{"self", Reference{program.ops[0].outputs[0]}}},
                         .outputs = {kNoValue}});
  remove_dead_ops(program);
  EXPECT_EQ(program.ops.size(), 6U);
}

TEST(Memory, IsSharedByViewsAndResultsInPlace) {
  const Program program = sample_program();
  const auto roots = memory_roots(program);
  const auto root_of = [&](size_t op) {
    return roots[static_cast<size_t>(program.ops[op].outputs[0])];
  };
  EXPECT_EQ(root_of(3), root_of(2));
  EXPECT_EQ(root_of(5), root_of(2));
  EXPECT_NE(root_of(2), root_of(0));
  EXPECT_EQ(root_of(1), program.state[5].value);
}

}  // namespace
}  // namespace renkei::program
