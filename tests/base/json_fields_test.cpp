#include "base/json_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/base/thrown_error.h"

namespace renkei {
namespace {

using test::thrown_error;

TEST(JsonFields, NamesThePlaceOfAFieldThatIsWrong) {
  const auto json = parse_json(R"({"list": [{"n": 3}, {"n": "x"}]})", "f.json");
  const auto objects = JsonFields(json, "f.json").objects("list");
  EXPECT_EQ(objects[0].integer("n", 0, 5), 3);
  EXPECT_EQ(thrown_error([&] { objects[1].integer("n", 0, 5); }).message,
            "f.json: list[1].n must be a whole number from 0 to 5");
  EXPECT_EQ(thrown_error([&] { objects[0].text("m"); }).message, "f.json: list[0].m must be there");
}

TEST(JsonFields, RefusesKeysThatAreNotAllowed) {
  const auto json = parse_json(R"({"list": [{"number": 3}]})", "f.json");
  const auto objects = JsonFields(json, "f.json").objects("list");
  objects[0].allow_only({"number", "text"});
  const Error near = thrown_error([&] { objects[0].allow_only({"numbers", "text"}); });
  EXPECT_EQ(near.code, ErrorCode::data);
  EXPECT_EQ(near.message, "f.json: list[0].number is not a known key");
  EXPECT_EQ(near.hint, "did you mean numbers?");
  EXPECT_EQ(thrown_error([&] {
              objects[0].allow_only({"a", "b"});
            }).hint,
            "the keys there are a, b");
}

TEST(JsonFields, TakesWholeNumbersHoweverTheyAreWritten) {
  const auto json = parse_json(R"({"a": 4.0, "b": 1e3, "c": 0.5, "d": 1e19})", "f.json");
  const JsonFields fields(json, "f.json");
  EXPECT_EQ(fields.integer("a", 0, 10), 4);
  EXPECT_EQ(fields.integer("b", 0, 2000), 1000);
  for (const char* name : {"c", "d"})
    EXPECT_EQ(thrown_error([&] { fields.integer(name, 0, INT64_MAX); }).code, ErrorCode::data);
}

TEST(JsonFields, TakesTextsAndNumbersAsIds) {
  const auto json = parse_json(R"({"ids": ["a", 7, "07"], "bad": [1.5]})", "f.json");
  const JsonFields fields(json, "f.json");
  const auto ids = fields.ids("ids");
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "7", "07"}));
  EXPECT_EQ(json_id(ids[1]), nlohmann::json(7));
  EXPECT_EQ(json_id(ids[2]), nlohmann::json("07"));
  EXPECT_EQ(thrown_error([&] { fields.ids("bad"); }).code, ErrorCode::data);
}

TEST(JsonFields, OfTextThatIsNotJsonHaveALine) {
  EXPECT_EQ(thrown_error([] { parse_json("{\n\"a\": ,\n}", "f.json"); }).message,
            "f.json line 2: this is not valid JSON");
  EXPECT_EQ(thrown_error([] { parse_json("1e999", "f.json"); }).code, ErrorCode::data);
}

}  // namespace
}  // namespace renkei
