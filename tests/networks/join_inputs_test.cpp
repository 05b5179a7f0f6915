#include "networks/join_inputs.h"

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
using testing::ElementsAre;
using testing::HasSubstr;

// Token ids and an image, and labels where asked for.
Program two_inputs(bool labels) {
  Builder builder("two");
  const ValueId ids = builder.input("ids", DType::i64, {builder.batch(), 6});
  const ValueId image = builder.input("input", DType::f32, {builder.batch(), 3, 2, 2});
  if (labels) builder.input("y", DType::i64, {builder.batch()});
  const ValueId weight = builder.parameter("tokens.weight", {11, 2}, normal(1));
  builder.output("output", builder.embedding(weight, ids));
  builder.output("more", builder.flatten(image, 1));
  return builder.finish();
}

TEST(JoinInputs, CutsARowApart) {
  const Program joined = join_inputs(two_inputs(false), 2);
  ASSERT_EQ(joined.inputs.size(), 1u);
  EXPECT_EQ(joined.inputs[0].name, "input");
  EXPECT_EQ(joined.value(joined.inputs[0].value).sizes,
            (std::vector<Size>{Size::expression("batch"), 18}));
  std::vector<std::string> targets;
  for (const program::Op& op : joined.ops) targets.push_back(op.target);
  EXPECT_THAT(targets, ElementsAre("aten.narrow.default", "aten.to.dtype", "aten.narrow.default",
                                   "aten.reshape.default", "aten.embedding.default",
                                   "aten.flatten.using_ints"));
  EXPECT_EQ(std::get<int64_t>(*find_argument(joined.ops[2], "start")), 6);
  EXPECT_EQ(std::get<int64_t>(*find_argument(joined.ops[2], "length")), 12);
}

TEST(JoinInputs, LeavesTheTarget) {
  const Program joined = join_inputs(two_inputs(true), 2);
  ASSERT_EQ(joined.inputs.size(), 2u);
  EXPECT_EQ(joined.inputs[0].name, "input");
  EXPECT_EQ(joined.inputs[1].name, "target");
}

TEST(JoinInputs, LeavesAnImageAlone) {
  Builder builder("image");
  const ValueId image = builder.input("x", DType::f32, {builder.batch(), 3, 8, 8});
  builder.output("output", builder.flatten(image, 1));
  const Program joined = join_inputs(builder.finish(), 1);
  EXPECT_EQ(joined.inputs[0].name, "input");
  EXPECT_EQ(joined.ops.size(), 1u);
  EXPECT_EQ(joined_shape(input_shapes(joined, 1)), (std::vector<int64_t>{3, 8, 8}));
}

TEST(JoinInputs, MakesTokenIdsOfNumbers) {
  Builder builder("tokens");
  const ValueId ids = builder.input("ids", DType::i64, {builder.batch(), 6});
  builder.output("output", builder.to(ids, DType::f32));
  const Program joined = join_inputs(builder.finish(), 1);
  EXPECT_EQ(joined.value(joined.inputs[0].value).dtype, DType::f32);
  EXPECT_EQ(joined.ops[0].target, "aten.to.dtype");
}

TEST(JoinInputs, RefusesWhatDataCannotHave) {
  EXPECT_THAT(test::thrown_error([] { join_inputs(two_inputs(false), 3); }).message,
              HasSubstr("takes 2 inputs, but 3 are given"));
  EXPECT_THAT(test::thrown_error([] { join_inputs(two_inputs(true), 1); }).message,
              HasSubstr("takes 3 inputs, but 1 are given"));
  Program open = two_inputs(false);
  open.symbols.push_back({.name = "length"});
  open.values[static_cast<size_t>(open.inputs[0].value)].sizes[1] = Size::expression("length");
  EXPECT_THAT(test::thrown_error([&] { join_inputs(open, 2); }).message, HasSubstr("length"));
  Program large = two_inputs(false);
  large.values[static_cast<size_t>(large.inputs[1].value)].sizes = {2, INT64_MAX, INT64_MAX};
  EXPECT_THROW(join_inputs(large, 2), Error);
}

TEST(InputShapes, AreReadFromText) {
  const auto shapes = parse_input_shapes("128<30522,3x8x8");
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].shape, std::vector<int64_t>{128});
  EXPECT_EQ(shapes[0].below, 30522);
  EXPECT_EQ(shapes[1].shape, (std::vector<int64_t>{3, 8, 8}));
  EXPECT_EQ(joined_shape(shapes), std::vector<int64_t>{320});
  for (const char* bad :
       {"", ",", "3x", "x", "3x-1", "3<", "3,,4", "3y4", "0", "99999999999999999999"})
    EXPECT_THROW(parse_input_shapes(bad), Error) << bad;
}

}  // namespace
}  // namespace renkei::networks
