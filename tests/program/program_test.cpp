#include "program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/program/sample_program.h"

namespace renkei::program {
namespace {

using testing::ElementsAre;

TEST(Program, KnowsTheNamesAndBytesOfItsTypes) {
  for (int i = 0; i <= static_cast<int>(DType::c128); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("f31"), std::nullopt);
  EXPECT_EQ(bytes_of(DType::bf16), 2);
  EXPECT_EQ(bytes_of(DType::c128), 16);
  EXPECT_TRUE(is_floating(DType::f16));
  EXPECT_FALSE(is_floating(DType::boolean));
}

TEST(Program, FindsAndSetsArgumentsByName) {
  Op op{.target = "aten.dropout.default", .arguments = {{"p", 0.5}}, .outputs = {}};
  EXPECT_EQ(find_argument(op, "train"), nullptr);
  set_argument(op, "train", true);
  set_argument(op, "p", 0.25);
  ASSERT_EQ(op.arguments.size(), 2U);
  EXPECT_EQ(std::get<double>(*find_argument(op, "p")), 0.25);
  EXPECT_TRUE(std::get<bool>(*find_argument(op, "train")));
}

TEST(Program, ListsReferencesInOrderAlsoThoseInLists) {
  const Op op{.target = "aten.cat.default",
              .arguments = {{"tensors", List{Reference{4}, List{Reference{2}}, Reference{4}}},
                            {"dim", Reference{1}}},
              .outputs = {}};
  EXPECT_THAT(references(op), ElementsAre(4, 2, 4, 1));
}

TEST(Program, HasSizesAtEveryBatch) {
  Program program = sample_program();
  program.symbols.push_back({.name = "s1", .low = 3});
  EXPECT_EQ(batch_symbol(program), "batch");
  const SymbolValues symbols = with_batch(program, 5);
  EXPECT_EQ(symbols.at("batch"), 5);
  EXPECT_EQ(symbols.at("s1"), 3);
  const Value& x = program.value(program.inputs[0].value);
  EXPECT_THAT(sizes_of(x, symbols), ElementsAre(5, 3, 8, 8));
  EXPECT_EQ(bytes_of(x, symbols), 5 * 3 * 8 * 8 * 4);
}

TEST(Program, RefusesSizesThatNoMemoryHas) {
  const Value huge{.name = "huge", .sizes = {INT64_MAX / 2, 8}};
  EXPECT_THROW(bytes_of(huge, {}), Error);
  const Value negative{.name = "negative", .sizes = {Size::expression("batch - 5")}};
  EXPECT_THROW(sizes_of(negative, {{"batch", 1}}), Error);
}

}  // namespace
}  // namespace renkei::program
