#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/program/sample_program.h"

namespace renkei::program {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

template <typename Change>
std::string refusal(Change change) {
  Program program = sample_program();
  change(program);
  try {
    check(program, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::data);
    EXPECT_THAT(error.message, StartsWith("file: "));
    return error.message;
  }
  return "no error";
}

TEST(CheckedProgram, IsRightAsItIs) {
  EXPECT_EQ(refusal([](Program&) {}), "no error");
}

TEST(CheckedProgram, HasPlacesInRange) {
  EXPECT_THAT(refusal([](Program& p) { set_argument(p.ops[0], "input", Reference{99}); }),
              AllOf(HasSubstr("operation 0 (aten.conv2d.default)"), HasSubstr("value 99")));
  EXPECT_THAT(refusal([](Program& p) { set_argument(p.ops[0], "input", Reference{-1}); }),
              HasSubstr("value -1"));
  EXPECT_THAT(refusal([](Program& p) { p.state[1].value = 1000; }), HasSubstr("norm.weight"));
  EXPECT_THAT(refusal([](Program& p) { p.inputs[0].value = -7; }), HasSubstr("input \"x\""));
  EXPECT_THAT(refusal([](Program& p) { p.outputs[0].value = kNoValue; }),
              HasSubstr("output \"y\""));
  EXPECT_THAT(refusal([](Program& p) { p.ops[0].outputs = {-2}; }), HasSubstr("value -2"));
}

TEST(CheckedProgram, MakesEveryValueOnceAndBeforeItsUse) {
  EXPECT_THAT(refusal([](Program& p) { std::swap(p.ops[0], p.ops[2]); }),
              HasSubstr("before it is made"));
  EXPECT_THAT(refusal([](Program& p) { p.ops[2].outputs = p.ops[0].outputs; }),
              HasSubstr("a second time"));
  EXPECT_THAT(refusal([](Program& p) { p.inputs[0].value = p.state[0].value; }),
              HasSubstr("a second time"));
  EXPECT_THAT(refusal([](Program& p) {
                set_argument(p.ops[0], "stride", List{List{Reference{p.outputs[0].value}}});
              }),
              HasSubstr("before it is made"));
  EXPECT_EQ(refusal([](Program& p) { p.ops[1].outputs = {kNoValue}; }), "no error");
}

TEST(CheckedProgram, HasNamesThatDiffer) {
  EXPECT_THAT(refusal([](Program& p) { p.state[1].name = p.state[0].name; }), HasSubstr("taken"));
  EXPECT_THAT(refusal([](Program& p) { p.state[1].aliases = {p.state[0].name}; }),
              HasSubstr("taken"));
  EXPECT_THAT(refusal([](Program& p) { p.state[0].name = ""; }), HasSubstr("empty name"));
  EXPECT_THAT(refusal([](Program& p) { p.outputs.push_back(p.outputs[0]); }), HasSubstr("twice"));
  EXPECT_THAT(refusal([](Program& p) { p.inputs[0].name = ""; }), HasSubstr("no name"));
  EXPECT_THAT(refusal([](Program& p) { p.ops[0].arguments[1].name = "input"; }),
              HasSubstr("input twice"));
  EXPECT_THAT(refusal([](Program& p) { p.ops[0].target = ""; }), HasSubstr("no target"));
}

TEST(CheckedProgram, HasSizesOfItsSymbolsOnly) {
  EXPECT_THAT(refusal([](Program& p) { p.values.back().sizes[0] = Size::expression("s1 + 1"); }),
              HasSubstr("depends on s1"));
  EXPECT_THAT(refusal([](Program& p) { p.values.back().sizes[0] = -3; }), HasSubstr("-3"));
  EXPECT_THAT(refusal([](Program& p) { p.symbols.push_back({.name = "s1", .batch = true}); }),
              HasSubstr("more than one symbol"));
  EXPECT_THAT(refusal([](Program& p) { p.symbols.push_back({.name = "batch"}); }),
              HasSubstr("twice"));
  EXPECT_THAT(refusal([](Program& p) { p.symbols.push_back({.name = "a b"}); }),
              HasSubstr("not a name"));
  EXPECT_THAT(refusal([](Program& p) { p.symbols.push_back({.name = "s1", .low = 5, .high = 4}); }),
              HasSubstr("range"));
  EXPECT_THAT(refusal([](Program& p) { p.values[0].sizes[0] = Size::expression("batch"); }),
              HasSubstr("conv.weight"));
}

TEST(CheckedProgram, HasItsStateInOrder) {
  EXPECT_THAT(refusal([](Program& p) { p.state[0].kind = StateKind::buffer; }),
              HasSubstr("a later kind"));
}

}  // namespace
}  // namespace renkei::program
