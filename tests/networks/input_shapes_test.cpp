#include "networks/input_shapes.h"

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
using testing::HasSubstr;

// Token ids, an image and labels.
Program three_inputs() {
  Builder builder("three");
  const ValueId ids = builder.input("ids", DType::i64, {builder.batch(), 6});
  builder.input("image", DType::f32, {builder.batch(), 3, 2, 2});
  builder.input("y", DType::i64, {builder.batch()});
  const ValueId weight = builder.parameter("tokens.weight", {11, 2}, normal(1));
  builder.output("output", builder.embedding(weight, ids));
  return builder.finish();
}

TEST(InputShapes, AreThoseOfASample) {
  const std::vector<InputShape> shapes = input_shapes(three_inputs());
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].name, "ids");
  EXPECT_EQ(shapes[0].shape, std::vector<int64_t>{6});
  EXPECT_EQ(shapes[1].shape, (std::vector<int64_t>{3, 2, 2}));
  EXPECT_TRUE(shapes[2].shape.empty());
}

TEST(InputShapes, AreNumbers) {
  Program open = three_inputs();
  open.values[static_cast<size_t>(open.inputs[0].value)].sizes[1] = Size::expression("length");
  EXPECT_THAT(test::thrown_error([&] { input_shapes(open); }).message, HasSubstr("length"));
  Program large = three_inputs();
  large.values[static_cast<size_t>(large.inputs[0].value)].sizes[1] = Size(int64_t{1} << 60);
  EXPECT_THROW(input_shapes(large), Error);
}

TEST(InputShapes, AreReadFromText) {
  const auto shapes = parse_input_shapes("128<30522,3x8x8");
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].below, 30522);
  EXPECT_EQ(shapes[1].shape, (std::vector<int64_t>{3, 8, 8}));
  for (const char* text : {"", "3x", "x3", "3,,4", "0", "3<", "-3"})
    EXPECT_THROW(parse_input_shapes(text), Error) << text;
}

}  // namespace
}  // namespace renkei::networks
