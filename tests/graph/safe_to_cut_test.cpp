#include "graph/safe_to_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/lowering.h"
#include "tests/graph/programs.h"

namespace renkei::graph {
namespace {

using program::DType;
using program::Reference;
using test::batch;
using test::HandMade;
using testing::ElementsAre;
using testing::IsEmpty;

program::NamedArgument dimension(int64_t number) {
  return {"dim", number};
}
program::NamedArgument first_index() {
  return {"index", int64_t{0}};
}
program::NamedArgument zero() {
  return {"value", int64_t{0}};
}

TEST(SafeToCut, MakesANewTensorWhereNobodySeesTheDifference) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto y = net.relu_(net.linear("layer", x, 4, 4));
  const SafeToCut safe = make_safe_to_cut(net.finish({{"y", net.relu_(y)}}));
  EXPECT_EQ(safe.program.ops[1].target, "aten.relu.default");
  EXPECT_EQ(safe.program.ops[2].target, "aten.relu.default");
  EXPECT_THAT(safe.together, IsEmpty());
}

TEST(SafeToCut, KeepsAnInPlaceOperationWithTheMemoryThatOthersSee) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto before = net.relu(x);
  const auto y = net.linear("layer", before, 4, 4);
  const auto column =
      net.op("aten.select.int", {net.self(y), dimension(1), first_index()}, {batch()});
  net.op("aten.fill_.Scalar", {net.self(column), zero()}, {batch()});
  const auto after = net.relu(y);
  const auto program = net.finish({{"after", after}});
  const SafeToCut safe = make_safe_to_cut(program);
  EXPECT_EQ(safe.program.ops[3].target, "aten.fill_.Scalar");
  ASSERT_THAT(safe.together, ElementsAre(ElementsAre(1, 2, 3)));
  const Lowered lowered = lower(program, 2);
  EXPECT_THAT(lowered.ops, ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3), ElementsAre(4)));
}

TEST(SafeToCut, KeepsThoseWhoReadBeforeTheChangeWithIt) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto y = net.linear("layer", x, 4, 4);
  const auto early = net.relu(y);
  net.relu_(y);
  const auto late = net.add(y, early);
  const SafeToCut safe = make_safe_to_cut(net.finish({{"late", late}}));
  EXPECT_THAT(safe.together, ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(SafeToCut, CountsResultsOfTheProgramAsUses) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto y = net.linear("layer", x, 4, 4);
  const auto z = net.relu_(y);
  const SafeToCut safe = make_safe_to_cut(net.finish({{"y", y}, {"z", z}}));
  EXPECT_EQ(safe.program.ops[1].target, "aten.relu_.default");
  EXPECT_THAT(safe.together, ElementsAre(ElementsAre(0, 1)));
}

TEST(SafeToCut, KeepsAllWhoUseAnInputThatIsChanged) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  net.relu_(x);
  const auto y = net.linear("first", x, 4, 4);
  const auto z = net.add(net.relu(y), x);
  const Lowered lowered = lower(net.finish({{"z", z}}), 2);
  // What lies between them would need both before and after.
  EXPECT_THAT(lowered.ops, ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_FALSE(lowered.graph.values[static_cast<size_t>(lowered.graph.inputs[0])].gradient);
}

TEST(SafeToCut, KeepsTheTypeOfWhatIsChanged) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto exact = net.input("exact", {batch(), 4}, DType::f64);
  const auto y = net.linear("layer", x, 4, 4);
  const auto z =
      net.op("aten.add_.Tensor", {net.self(y), {"other", Reference{exact}}}, {batch(), 4});
  const SafeToCut safe = make_safe_to_cut(net.finish({{"z", z}}));
  EXPECT_EQ(safe.program.ops[1].target, "aten.add_.Tensor");
  EXPECT_THAT(safe.together, ElementsAre(ElementsAre(0, 1)));
}

TEST(SafeToCut, KeepsTheHistoryOfWhatIsChangedUnderNoGrad) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto y = net.linear("layer", x, 4, 4);
  const auto z = net.relu_(y);
  net.made.ops.back().no_grad = true;
  const auto program = net.finish({{"z", z}});
  EXPECT_EQ(make_safe_to_cut(program).program.ops[1].target, "aten.relu_.default");
  EXPECT_TRUE(values_with_gradient(program)[static_cast<size_t>(z)]);
}

TEST(SafeToCut, LetsAConstantThatIsChangedBeComputedByWhoeverUsesIt) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto mask = net.op("aten.ones.default", {{"size", program::List{int64_t{4}}}}, {4});
  const auto corner = net.op("aten.select.int", {net.self(mask), dimension(0), first_index()}, {});
  net.op("aten.fill_.Scalar", {net.self(corner), zero()}, {});
  const auto y = net.add(x, mask);
  const auto z = net.add(net.relu(y), mask);
  const Lowered lowered = lower(net.finish({{"z", z}}), 2);
  EXPECT_THAT(lowered.ops, ElementsAre(ElementsAre(3), ElementsAre(4), ElementsAre(5)));
  EXPECT_THAT(lowered.common, ElementsAre(0, 1, 2));
  EXPECT_THAT(part_of(lowered, {2}).ops, ElementsAre(0, 1, 2, 5));
}

TEST(SafeToCut, SeesAGradientThatIsWrittenIntoAConstant) {
  HandMade net;
  const auto x = net.input("input", {batch(), 4});
  const auto y = net.linear("layer", x, 4, 4);
  const auto room = net.op("aten.zeros_like.default", {net.self(x)}, {batch(), 4});
  net.op("aten.copy_.default", {net.self(room), {"src", Reference{y}}}, {batch(), 4});
  const auto end = net.relu(room);
  const auto program = net.finish({{"end", end}});
  EXPECT_TRUE(values_with_gradient(program)[static_cast<size_t>(room)]);
  EXPECT_TRUE(values_with_gradient(program)[static_cast<size_t>(end)]);
  EXPECT_THAT(make_safe_to_cut(program).together, ElementsAre(ElementsAre(1, 2)));
}

}  // namespace
}  // namespace renkei::graph
