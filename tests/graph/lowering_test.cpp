#include "graph/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/thrown_error.h"
#include "tests/graph/programs.h"

namespace renkei::graph {
namespace {

using program::DType;
using program::Program;
using program::Reference;
using test::batch;
using test::HandMade;
using test::thrown_error;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> kinds(const Lowered& lowered) {
  std::vector<std::string> all;
  for (const Op& op : lowered.graph.ops) all.push_back(op.kind);
  return all;
}

const Value& value_of(const Lowered& lowered, program::ValueId id) {
  const auto place = std::ranges::find(lowered.values, id) - lowered.values.begin();
  return lowered.graph.values.at(static_cast<size_t>(place));
}

program::NamedArgument argument(const std::string& name, program::Argument value) {
  return {name, std::move(value)};
}

// x → first → relu_ → second → loss, with a target.
Program two_layers() {
  HandMade net;
  const auto x = net.input("input", {batch(), 8});
  const auto target = net.input("target", {batch()}, DType::i64);
  auto y = net.relu_(net.linear("body.first", x, 8, 4));
  y = net.linear("body.second", y, 4, 3);
  const auto loss = net.op("aten.cross_entropy_loss.default",
                           {net.self(y), argument("target", Reference{target})}, {});
  return net.finish({{"loss", loss}});
}

TEST(Lowering, MakesAnOpOfEachOperationNamedAfterItsLayer) {
  const Lowered lowered = lower(two_layers(), 5);
  const Graph& graph = lowered.graph;
  EXPECT_THAT(kinds(lowered), ElementsAre("linear", "relu", "linear", "cross_entropy_loss"));
  EXPECT_EQ(graph.ops[0].name, "body.first");
  EXPECT_EQ(graph.ops[1].name, "relu");
  EXPECT_EQ(graph.ops[2].name, "body.second");
  EXPECT_EQ(graph.batch, 5);
  ASSERT_EQ(graph.inputs.size(), 2u);
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.inputs[1])].name, "target");
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.inputs[0])].bytes, 5 * 8 * 4);
  EXPECT_EQ(graph.parameters[1].name, "body.second.weight");
  EXPECT_THAT(graph.ops[2].parameters, ElementsAre(1));
  EXPECT_EQ(graph.ops[0].flops, 2.0 * 5 * 8 * 4);
}

TEST(Lowering, NamesAnOpWithoutParametersAfterItsModule) {
  Program program = two_layers();
  program.ops[1].module = "body.activation";
  EXPECT_EQ(lower(program, 1).graph.ops[1].name, "body.activation");
}

TEST(Lowering, KnowsTheBatch) {
  HandMade net;
  const auto x = net.input("input", {batch(), 8});
  const auto y =
      net.op("aten.flatten.using_ints", {net.self(x)}, {program::Size::expression("batch*8")});
  const auto turned = net.op(
      "aten.transpose.int",
      {net.self(x), argument("dim0", int64_t{0}), argument("dim1", int64_t{1})}, {8, batch()});
  const auto longer =
      net.op("aten.cat.default", {net.self(y)}, {program::Size::expression("batch*8 + 1")});
  const auto loss = net.op("aten.mean.default", {net.self(y)}, {});
  const Lowered lowered =
      lower(net.finish({{"y", y}, {"turned", turned}, {"longer", longer}, {"loss", loss}}), 2);
  const auto dimension = [&](program::ValueId id) {
    const auto place = std::ranges::find(lowered.values, id) - lowered.values.begin();
    const int found = lowered.batch_dimension.at(static_cast<size_t>(place));
    EXPECT_EQ(value_of(lowered, id).batch, found >= 0);
    return found;
  };
  EXPECT_EQ(dimension(x), 0);
  EXPECT_EQ(dimension(y), 0);
  EXPECT_EQ(dimension(turned), 1);
  EXPECT_EQ(dimension(longer), -1);  // two halves of a batch are not a batch
  EXPECT_EQ(dimension(loss), -1);
  EXPECT_THAT(value_of(lowered, turned).shape, ElementsAre(8, 2));
}

TEST(Lowering, LetsEachPartComputeWhatFollowsFromConstantsAndParameters) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto positions = net.state("positions.weight", {9, 4});
  const auto places = net.op("aten.arange.default", {argument("end", int64_t{4})}, {4}, DType::i64);
  const auto row = net.op(
      "aten.embedding.default",
      {argument("weight", Reference{positions}), argument("indices", Reference{places})}, {4, 4});
  const auto y = net.add(x, row);
  const auto z = net.add(net.relu(y), row);
  const Lowered lowered = lower(net.finish({{"z", z}}), 2);
  EXPECT_THAT(kinds(lowered), ElementsAre("add", "relu", "add"));
  EXPECT_THAT(lowered.common, ElementsAre(0, 1));
  EXPECT_THAT(lowered.graph.ops[2].parameters, ElementsAre(0));
  EXPECT_THAT(part_of(lowered, {2}).ops, ElementsAre(0, 1, 4));
  EXPECT_THAT(part_of(lowered, {2}).parameters, ElementsAre(0));
  EXPECT_THAT(part_of(lowered, {1}).ops, ElementsAre(3));
}

TEST(Lowering, OfATiedWeightHasOneParameterWithTwoUsers) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto weight = net.state("tied.weight", {4, 4});
  const auto y = net.linear(net.relu(net.linear(x, weight, 4)), weight, 4);
  const Lowered lowered = lower(net.finish({{"y", y}}), 2);
  EXPECT_EQ(lowered.graph.parameters.size(), 1u);
  EXPECT_THAT(lowered.graph.ops[0].parameters, ElementsAre(0));
  EXPECT_THAT(lowered.graph.ops[2].parameters, ElementsAre(0));
}

TEST(Lowering, NeedsNoTensorForSizesOfTheBatch) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto samples = net.integer("aten.sym_size.int", {net.self(x), argument("dim", int64_t{0})});
  const auto rows =
      net.integer("operator.mul", {argument("a", Reference{samples}), argument("b", int64_t{2})});
  const auto y = net.linear("layer", x, 4, 6);
  const auto z = net.op("aten.view.default",
                        {net.self(y), argument("size", program::List{Reference{rows}, int64_t{3}})},
                        {program::Size::expression("2*batch"), 3});
  const Lowered lowered = lower(net.finish({{"z", z}}), 2);
  EXPECT_THAT(kinds(lowered), ElementsAre("linear", "view"));
  EXPECT_EQ(lowered.graph.ops[1].inputs.size(), 1u);
  EXPECT_TRUE(lowered.common.empty());
  ASSERT_EQ(lowered.sizes.size(), 2u);
  EXPECT_EQ(lowered.sizes[1].value, rows);
  EXPECT_EQ(lowered.sizes[1].size.value({{"batch", 7}}), 14);
  EXPECT_THAT(part_of(lowered, {1}).ops, ElementsAre(3));
}

TEST(Lowering, NeedsTheTensorForASizeThatOnlyItKnows) {
  HandMade net;
  net.made.symbols.push_back({.name = "found", .low = 0, .high = 1 << 20});
  const auto found = program::Size::expression("found");
  const auto x = net.input("input", {batch(), 4});
  const auto some = net.op("aten.nonzero.default", {net.self(x)}, {found, 2}, DType::i64);
  const auto count =
      net.integer("aten.sym_size.int", {net.self(some), argument("dim", int64_t{0})});
  const auto y = net.linear("layer", x, 4, 4);
  const auto z =
      net.op("aten.mul.Tensor", {net.self(y), argument("other", Reference{count})}, {batch(), 4});
  const Lowered lowered = lower(net.finish({{"z", z}}), 2);
  EXPECT_TRUE(lowered.sizes.empty());
  EXPECT_THAT(kinds(lowered), ElementsAre("nonzero", "linear", "mul"));
  EXPECT_EQ(lowered.graph.ops[2].inputs.size(), 2u);
  EXPECT_THAT(part_of(lowered, {2}).ops, ElementsAre(1, 3));
}

TEST(Lowering, PutsChangesOfABufferIntoTheNextOp) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4, 8, 8});
  const auto mean = net.buffer("norm.running_mean", {4}), var = net.buffer("norm.running_var", {4});
  const auto count =
      net.state("norm.num_batches_tracked", {}, program::StateKind::buffer, DType::i64);
  const auto y = net.relu(x);
  net.op("aten.add_.Tensor", {net.self(count), argument("other", int64_t{1})}, {}, DType::i64);
  const auto z =
      net.op("aten.batch_norm.default",
             {argument("input", Reference{y}), argument("weight", program::None{}),
              argument("bias", program::None{}), argument("running_mean", Reference{mean}),
              argument("running_var", Reference{var}), argument("training", true),
              argument("momentum", 0.1), argument("eps", 1e-5), argument("cudnn_enabled", false)},
             {batch(), 4, 8, 8});
  const Lowered lowered = lower(net.finish({{"z", z}}), 2);
  EXPECT_THAT(kinds(lowered), ElementsAre("relu", "batch_norm"));
  EXPECT_THAT(lowered.ops[1], ElementsAre(1, 2));
  EXPECT_EQ(lowered.graph.ops[1].name, "norm");
  EXPECT_THAT(lowered.graph.ops[1].parameters, ElementsAre(0, 1, 2));
  EXPECT_FALSE(lowered.graph.parameters[2].trainable);
}

// torch.export ends with a copy into the buffer that was changed at the beginning.
TEST(Lowering, KeepsAllThatChangesABufferTogether) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto steps = net.buffer("steps", {});
  const auto more =
      net.op("aten.add_.Tensor", {net.self(steps), argument("other", int64_t{1})}, {});
  const auto y = net.relu(net.linear("layer", x, 4, 4));
  net.op("aten.copy_.default", {net.self(steps), argument("src", Reference{more})}, {});
  const Lowered lowered = lower(net.finish({{"y", y}}), 2);
  EXPECT_THAT(kinds(lowered), ElementsAre("linear", "relu"));
  EXPECT_THAT(lowered.ops[0], ElementsAre(0, 1, 3));
  EXPECT_THAT(lowered.graph.ops[1].parameters, ElementsAre());
}

TEST(Lowering, ReadsABufferOnlyWhereItIsChanged) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto scale = net.buffer("scale", {});
  const auto y = net.linear("first", x, 4, 4);
  net.op("aten.mul_.Tensor", {net.self(scale), argument("other", 0.9)}, {});
  const auto z = net.linear("second", y, 4, 4);
  const auto w =
      net.op("aten.mul.Tensor", {net.self(z), argument("other", Reference{scale})}, {batch(), 4});
  const auto end = net.relu(w);
  const Lowered lowered = lower(net.finish({{"end", end}}), 2);
  EXPECT_THAT(kinds(lowered), ElementsAre("linear", "linear", "mul", "relu"));
  EXPECT_THAT(lowered.ops[2], ElementsAre(1, 3));
}

TEST(Lowering, StopsGradientsAtNoGradAndWhereThereIsNoDerivative) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto y = net.linear("layer", x, 4, 4);
  const auto fixed = net.op("aten.detach.default", {net.self(y)}, {batch(), 4});
  const auto a = net.relu(fixed);
  const auto b = net.relu(y);
  net.made.ops.back().no_grad = true;
  const auto best = net.op("aten.argmax.default", {net.self(y)}, {batch()}, DType::i64);
  const auto sum = net.add(net.add(a, b), y);
  const Lowered lowered = lower(net.finish({{"sum", sum}, {"best", best}}), 2);
  EXPECT_FALSE(value_of(lowered, x).gradient);
  EXPECT_TRUE(value_of(lowered, y).gradient);
  for (const auto stopped : {fixed, a, b, best}) EXPECT_FALSE(value_of(lowered, stopped).gradient);
  EXPECT_TRUE(value_of(lowered, sum).gradient);
}

TEST(Lowering, RefusesWhatComputesNothingFromItsInput) {
  HandMade net;
  net.input("input", {batch(), 4});
  const auto zeros =
      net.op("aten.zeros.default", {argument("size", program::List{int64_t{4}})}, {4});
  const Program program = net.finish({{"zeros", zeros}});
  EXPECT_THAT(thrown_error([&] { lower(program, 1); }).message,
              HasSubstr("net computes nothing from its input"));
}

TEST(Lowering, RefusesAResultThatDoesNotDependOnTheInput) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto y = net.relu(x);
  const auto zeros =
      net.op("aten.zeros.default", {argument("size", program::List{int64_t{4}})}, {4});
  const Program program = net.finish({{"y", y}, {"zeros", zeros}});
  EXPECT_THAT(thrown_error([&] { lower(program, 1); }).message,
              HasSubstr("the result 'zeros' of net does not depend on its input"));
}

}  // namespace
}  // namespace renkei::graph
