#include "program/program_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "program/print.h"
#include "tests/program/sample_program.h"

namespace renkei::program {
namespace {

using testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  try {
    from_json(text, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::data);
    return error.message;
  }
  return "no error";
}

std::string with(std::string_view from, std::string_view to) {
  std::string text = to_json(sample_program());
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

Program with_every_argument() {
  Program program = sample_program();
  program.symbols.push_back({.name = "s1", .low = 0, .high = 77});
  program.values.push_back({.name = "n", .kind = ValueKind::integer});
  program.state[0].aliases = {"head.weight"};
  program.state[0].trainable = false;
  program.state[5].persistent = false;
  program.state[0].initial = {.kind = Initial::Kind::truncated_normal, .a = 0, .b = 0.02};
  program.ops.push_back({.target = "test.all",
                         .arguments = {{"none", None{}},
                                       {"yes", true},
                                       {"whole", int64_t{1}},
                                       {"large", INT64_MIN},
                                       {"real", 1.0},
                                       {"small", 1e-300},
                                       {"infinite", -std::numeric_limits<double>::infinity()},
                                       {"text", std::string("a \"b\" \n")},
                                       {"dtype", DType::boolean},
                                       {"word", Word{"strided"}},
                                       {"list", List{Reference{7}, None{}, List{2.5}, List{}}}},
                         .outputs = {kNoValue, static_cast<ValueId>(program.values.size()) - 1},
                         .no_grad = true});
  return program;
}

TEST(ProgramJson, GivesBackTheSameProgram) {
  const Program program = with_every_argument();
  const Program again = from_json(to_json(program), "file");
  EXPECT_EQ(to_json(again), to_json(program));
  EXPECT_EQ(print(again), print(program));
  ASSERT_EQ(again.state.size(), program.state.size());
  EXPECT_EQ(again.state[0].aliases, program.state[0].aliases);
  EXPECT_FALSE(again.state[0].trainable);
  EXPECT_TRUE(again.state[0].persistent);
  EXPECT_FALSE(again.state[5].persistent);
  EXPECT_EQ(again.state[0].initial.kind, Initial::Kind::truncated_normal);
  EXPECT_EQ(again.state[0].initial.b, 0.02);
  EXPECT_EQ(again.symbols[0].high, 1024);
  EXPECT_TRUE(again.symbols[0].batch);
  for (size_t i = 0; i < program.ops.back().arguments.size(); ++i)
    EXPECT_EQ(again.ops.back().arguments[i].value.index(),
              program.ops.back().arguments[i].value.index())
        << program.ops.back().arguments[i].name;
}

TEST(ProgramJson, KeepsNumbersThatAreNone) {
  Program program = sample_program();
  set_argument(program.ops[2], "eps", std::nan(""));
  const Program again = from_json(to_json(program), "file");
  EXPECT_TRUE(std::isnan(std::get<double>(*find_argument(again.ops[2], "eps"))));
}

TEST(ProgramJson, RefusesANewerVersionWithASentence) {
  EXPECT_EQ(refusal_of(with("\"version\": 1", "\"version\": 2, \"new\": true")),
            "file has version 2 of the program format, and this Renkei reads up to version 1");
}

TEST(ProgramJson, RefusesUnknownKeysEverywhere) {
  for (const char* place :
       {"\"format\"", "\"low\"", "\"dtype\"", "\"kind\"", "\"value\"", "\"target\"", "\"a\""}) {
    const std::string from = place;
    std::string text = to_json(with_every_argument());
    if (const size_t at = text.find(from); at != text.npos) {
      text.insert(at, "\"surprise\": 1, ");
      EXPECT_THAT(refusal_of(text), HasSubstr("unknown key \"surprise\"")) << place;
    } else {
      ADD_FAILURE() << place;
    }
  }
}

TEST(ProgramJson, RefusesWhatIsNotAProgram) {
  EXPECT_THAT(refusal_of(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("object"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("not a program"));
  EXPECT_THAT(refusal_of(R"({"format": "renkei program", "version": 1})"), HasSubstr("symbols"));
  EXPECT_THAT(refusal_of(with("\"f32\"", "\"f33\"")), HasSubstr("values[0].dtype"));
  EXPECT_THAT(refusal_of(with("[4,3,3,3]", "[4,3,3,-3]")), HasSubstr("values[0].sizes"));
  EXPECT_THAT(refusal_of(with("\"batch\",3", "\"batch +\",3")), HasSubstr("ends too early"));
  EXPECT_THAT(refusal_of(with("\"parameter\"", "\"paramter\"")), HasSubstr("parameter, buffer"));
  EXPECT_THAT(refusal_of(with("{\"value\":6}", "{\"value\":600}")), HasSubstr("value 600"));
  EXPECT_THAT(refusal_of(with("{\"value\":6}", "{\"value\":6,\"word\":\"a\"}")),
              HasSubstr("one key"));
  EXPECT_THAT(refusal_of(with("0.5", "{\"real\":\"much\"}")), HasSubstr("inf, -inf or nan"));
  EXPECT_THAT(refusal_of(with("0.5", "18446744073709551615")), HasSubstr("p must be"));
  EXPECT_THAT(refusal_of(with("0.5", std::string(40, '[') + std::string(40, ']'))),
              HasSubstr("less deep"));
  EXPECT_THAT(refusal_of(with("[\"p\",0.5]", "\"p\"")), HasSubstr("pairs"));
}

TEST(ProgramJson, TakesNestingOfAMillionWithoutACrash) {
  refusal_of(std::string(1000000, '['));
  refusal_of(with("0.5", std::string(1000000, '[') + std::string(1000000, ']')));
}

}  // namespace
}  // namespace renkei::program
