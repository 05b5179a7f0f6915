#include "capture/sympy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/size.h"
#include "tests/base/thrown_error.h"

namespace renkei::capture {
namespace {

program::Size size(const std::string& text) {
  return program::Size::expression(size_from_sympy(
      text, [](const std::string& name) { return name == "s77" ? "batch" : name; }));
}

constexpr const char* kBatch = "Symbol('s77', positive=True, integer=True)";

TEST(Sympy, ExpressionsOfExportedModelsAreConverted) {
  EXPECT_EQ(size(kBatch).str(), "batch");
  EXPECT_EQ(size(fmt::format("Mul(Integer(49), {})", kBatch)).str(), "49*batch");
  EXPECT_EQ(size("Integer(-3)").number(), -3);
}

TEST(Sympy, ConvertedExpressionsHaveTheSameValue) {
  const auto value = [](const std::string& format) {
    return size(fmt::format(fmt::runtime(format), kBatch)).value({{"batch", 11}});
  };
  EXPECT_EQ(value("Add(FloorDiv(Add({}, Integer(-1)), Integer(2)), Integer(1))"), 6);
  EXPECT_EQ(value("Mod({}, Integer(4))"), 3);
  EXPECT_EQ(value("Max(Integer(7), {})"), 11);
  EXPECT_EQ(value("Pow({}, Integer(2))"), 121);
  EXPECT_EQ(value("TruncToInt(Mul(Float('1.5', precision=53), ToFloat({})))"), 16);
  EXPECT_EQ(value("CeilToInt(IntTrueDiv({}, Integer(2)))"), 6);
  EXPECT_EQ(value("ModularIndexing({}, Integer(2), Integer(3))"), 2);
}

TEST(Sympy, WhatIsNoSizeIsRefused) {
  for (const std::string text :
       {"", "Add(", "Symbol('a b')", "__import__('os')", "Add()", "Mod(Integer(1))", "Integer(x)",
        "Float('nan')", "Where(Integer(1), Integer(2), Integer(3))", "Integer(1))", "Symbol('')"})
    EXPECT_EQ(test::thrown_error([&] { size(text); }).code, ErrorCode::data) << text;
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "Add(";
  EXPECT_THAT(test::thrown_error([&] { size(deep); }).message, testing::HasSubstr("too many"));
}

}  // namespace
}  // namespace renkei::capture
