#include "run/executor.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/thrown_error.h"

namespace renkei::run {
namespace {

using program::DType;
using program::List;
using program::None;
using program::Op;
using program::Program;
using program::Reference;
using program::Value;
using program::ValueKind;

// A program of values named by letters, in the order of their places.
Program sketch(std::vector<Value> values, std::vector<Op> ops, std::vector<std::string> inputs,
               const std::vector<std::string>& outputs) {
  Program program{.name = "sketch", .symbols = {{.name = "batch", .batch = true}}};
  const auto find = [&](const std::string& name) {
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].name == name) return static_cast<int>(i);
    return -1;
  };
  for (const std::string& name : inputs) program.inputs.push_back({name, find(name)});
  for (const std::string& name : outputs) program.outputs.push_back({name, find(name)});
  program.values = std::move(values);
  program.ops = std::move(ops);
  return program;
}

std::vector<torch::Tensor> run(const Program& program, const std::vector<torch::Tensor>& inputs,
                               const RandomKey& key = {}) {
  const Executor executor(program, whole(program));
  ExecutionContext context{.random = key};
  return executor.run(inputs, {}, inputs.at(0).size(0), context);
}

TEST(Executor, ComputesWhatTorchComputes) {
  const Program program = sketch(
      {{.name = "x"}, {.name = "y"}, {.name = "z"}},
      {{.target = "aten.relu.default", .arguments = {{"self", Reference{0}}}, .outputs = {1}},
       // A number where the schema has a tensor does not decide the type of the result.
       {.target = "aten.mul.Tensor",
        .arguments = {{"self", Reference{1}}, {"other", 2.5}},
        .outputs = {2}}},
      {"x"}, {"z"});
  const torch::Tensor x = torch::randn({4, 3});
  EXPECT_TRUE(torch::equal(run(program, {x}).at(0), torch::relu(x) * 2.5));
}

TEST(Executor, SplitsListsAndJoinsThem) {
  const Program program = sketch(
      {{.name = "x"}, {.name = "a"}, {.name = "b"}, {.name = "y"}},
      {{.target = "aten.split.Tensor",
        .arguments = {{"self", Reference{0}}, {"split_size", int64_t{2}}, {"dim", int64_t{1}}},
        .outputs = {1, 2}},
       {.target = "aten.cat.default",
        .arguments = {{"tensors", List{Reference{2}, Reference{1}}}, {"dim", int64_t{1}}},
        .outputs = {3}}},
      {"x"}, {"y"});
  const torch::Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(
      torch::equal(run(program, {x}).at(0), torch::cat({x.narrow(1, 2, 2), x.narrow(1, 0, 2)}, 1)));
}

TEST(Executor, OneProgramHoldsForEveryBatch) {
  const Program program =
      sketch({{.name = "x"},
              {.name = "n", .kind = ValueKind::integer, .dtype = DType::i64},
              {.name = "m", .kind = ValueKind::integer, .dtype = DType::i64},
              {.name = "y"}},
             {{.target = "aten.sym_size.int",
               .arguments = {{"self", Reference{0}}, {"dim", int64_t{0}}},
               .outputs = {1}},
              {.target = "operator.mul",
               .arguments = {{"a", Reference{1}}, {"b", int64_t{2}}},
               .outputs = {2}},
              {.target = "aten.view.default",
               .arguments = {{"self", Reference{0}}, {"size", List{Reference{2}, int64_t{-1}}}},
               .outputs = {3}}},
             {"x"}, {"y"});
  for (const int64_t batch : {1, 3, 8})
    EXPECT_EQ(run(program, {torch::randn({batch, 6})}).at(0).sizes(),
              at::IntArrayRef({2 * batch, 3}));
}

TEST(Executor, APartGetsSizesFromTheNumberOfSamples) {
  const Program program =
      sketch({{.name = "x"},
              {.name = "n", .kind = ValueKind::integer, .dtype = DType::i64},
              {.name = "y"}},
             {{.target = "aten.sym_size.int",
               .arguments = {{"self", Reference{0}}, {"dim", int64_t{0}}},
               .outputs = {1}},
              {.target = "aten.full.default",
               .arguments = {{"size", List{Reference{1}, int64_t{2}}}, {"fill_value", 3.0}},
               .outputs = {2}}},
             {"x"}, {"y"});
  const Executor executor(
      program, {.ops = {1}, .outputs = {2}, .sizes = {{1, program::Size::expression("batch")}}});
  EXPECT_TRUE(executor.inputs().empty());
  ExecutionContext context;
  EXPECT_TRUE(torch::equal(executor.run({}, {}, 5, context).at(0), torch::full({5, 2}, 3.0)));
}

Program dropout_of(const std::string& target) {
  const bool ours = target.starts_with("renkei.");
  std::vector<program::NamedArgument> arguments{{"input", Reference{0}}, {"p", 0.5}};
  if (!ours) arguments.push_back({"train", true});
  return sketch({{.name = "x"}, {.name = "y"}},
                {{.target = target, .arguments = arguments, .outputs = {1}}}, {"x"}, {"y"});
}

TEST(Executor, DrawsByStepMicroBatchAndSeedAlone) {
  for (const std::string target : {"aten.dropout.default", "renkei.dropout.default"}) {
    const Program program = dropout_of(target);
    const torch::Tensor x = torch::ones({64, 8});
    const RandomKey key{.seed = 7, .step = 3, .micro_batch = 2};
    const torch::Tensor first = run(program, {x}, key).at(0);
    torch::randn({100});  // what others draw in between changes nothing
    EXPECT_TRUE(torch::equal(run(program, {x}, key).at(0), first)) << target;
    for (const RandomKey& other : {RandomKey{8, 3, 2}, RandomKey{7, 4, 2}, RandomKey{7, 3, 1}})
      EXPECT_FALSE(torch::equal(run(program, {x}, other).at(0), first)) << target;
    EXPECT_NEAR(first.eq(0).to(torch::kFloat32).mean().item<float>(), 0.5, 0.1);
    EXPECT_EQ(first.max().item<float>(), 2);
  }
}

TEST(Executor, GradientsGoThroughOursAsThroughTorchs) {
  const Program program = dropout_of("renkei.dropout.default");
  torch::Tensor x = torch::randn({32, 16}).requires_grad_();
  const torch::Tensor y = run(program, {x}, {.seed = 1}).at(0);
  y.sum().backward();
  const torch::Tensor kept = y.detach().ne(0).to(torch::kFloat32) * 2;
  EXPECT_TRUE(torch::equal(x.grad(), kept));
}

TEST(Executor, WhatWasWrittenUnderNoGradHasNone) {
  Program program = sketch({{.name = "x"}, {.name = "y"}},
                           {{.target = "aten.relu.default",
                             .arguments = {{"self", Reference{0}}},
                             .outputs = {1},
                             .no_grad = true}},
                           {"x"}, {"y"});
  const torch::Tensor x = torch::randn({2, 2}).requires_grad_();
  EXPECT_FALSE(run(program, {x}).at(0).requires_grad());
  program.ops[0].no_grad = false;
  EXPECT_TRUE(run(program, {x}).at(0).requires_grad());
}

TEST(Executor, NamesAnOperationThatIsMissing) {
  const Program program = sketch({{.name = "x"}, {.name = "y"}},
                                 {{.target = "torchaudio.warp.default",
                                   .arguments = {{"x", Reference{0}}},
                                   .outputs = {1},
                                   .module = "front.warp",
                                   .source = "net.py:12 in forward"}},
                                 {"x"}, {"y"});
  const Error error = test::thrown_error([&] { run(program, {torch::ones({1})}); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_NE(error.message.find("torchaudio::warp"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("net.py:12"), std::string::npos) << error.message;
}

TEST(Executor, NamesArgumentsThatDoNotFit) {
  Program program = sketch(
      {{.name = "x"}, {.name = "y"}},
      {{.target = "aten.relu.default", .arguments = {{"input", Reference{0}}}, .outputs = {1}}},
      {"x"}, {"y"});
  EXPECT_NE(test::thrown_error([&] { run(program, {torch::ones({1})}); }).message.find("self"),
            std::string::npos);
  program.ops[0].arguments = {{"self", Reference{0}}, {"colour", int64_t{3}}};
  EXPECT_NE(test::thrown_error([&] { run(program, {torch::ones({1})}); }).message.find("colour"),
            std::string::npos);
}

TEST(Executor, SaysWhichOperationFailed) {
  const Program program =
      sketch({{.name = "x"}, {.name = "y"}},
             {{.target = "aten.view.default",
               .arguments = {{"self", Reference{0}}, {"size", List{int64_t{7}}}},
               .outputs = {1},
               .module = "head"}},
             {"x"}, {"y"});
  const Error error = test::thrown_error([&] { run(program, {torch::ones({2, 3})}); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_NE(error.message.find("head"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace renkei::run
