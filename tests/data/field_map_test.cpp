#include "data/field_map.h"

#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

std::vector<std::string> names_of(const std::vector<MappedField>& fields) {
  std::vector<std::string> names;
  for (const MappedField& field : fields)
    names.push_back(fmt::format("{}:{}", field.field, field.name));
  return names;
}

TEST(FieldMap, IsReadFromText) {
  EXPECT_TRUE(parse_field_map("auto").empty());
  EXPECT_TRUE(parse_field_map("").empty());
  EXPECT_EQ(parse_field_map("input=images, target = labels"),
            (FieldMap{{"input", "images"}, {"target", "labels"}}));
}

TEST(FieldMap, RefusesWhatIsNone) {
  for (const char* text : {"input", "=images", "input=", "a=b,,c=d", "a=b,c"})
    expect_error(ErrorCode::usage, "is no INPUT=FIELD", [&] { parse_field_map(text); });
  expect_error(ErrorCode::usage, "'input' gets two fields",
               [] { parse_field_map("input=a,input=b"); });
}

TEST(FieldMap, GivesFieldsTheNamesOfInputs) {
  const std::vector<std::string> fields{"images", "labels", "input", "ids"};
  EXPECT_THAT(names_of(map_fields({}, fields)),
              testing::ElementsAre("0:images", "1:labels", "2:input", "3:ids"));
  // The field that was called input before has no name any more; one may serve two inputs.
  EXPECT_THAT(names_of(map_fields({{"input", "images"}, {"a", "ids"}, {"b", "ids"}}, fields)),
              testing::ElementsAre("0:input", "3:a", "3:b", "1:labels"));
}

TEST(FieldMap, NamesTheNearestOfWhatIsNotThere) {
  const auto hint_of = [](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.message + " / " + error.hint;
    }
    return std::string();
  };
  EXPECT_EQ(hint_of([] {
              map_fields({{"input", "image"}}, {"images", "labels"});
            }),
            "data.fields: the data has no field 'image'; there are images, labels / did you mean "
            "images?");
  EXPECT_EQ(hint_of([] {
              match_inputs({{"imput", "x"}}, {{"input"}, {"target", true}}, {"x", "target"});
            }),
            "data.fields: the program has no input 'imput'; there are input, target / did you mean "
            "input?");
}

TEST(FieldMap, GivesInputsTheFieldsOfTheirNames) {
  const std::vector<WantedInput> towers{{"image"}, {"tokens"}, {"labels", true}};
  EXPECT_EQ(match_inputs({}, towers, {"tokens", "image", "labels", "spare"}),
            (FieldMap{{"image", "image"}, {"tokens", "tokens"}, {"labels", "labels"}}));
  // The only one that is left takes "input", and the target "target".
  EXPECT_EQ(match_inputs({}, towers, {"input", "target", "tokens"}),
            (FieldMap{{"tokens", "tokens"}, {"image", "input"}, {"labels", "target"}}));
  EXPECT_EQ(match_inputs({{"image", "a"}}, towers, {"a", "input", "target"}),
            (FieldMap{{"image", "a"}, {"tokens", "input"}, {"labels", "target"}}));
}

TEST(FieldMap, SaysWhichInputGetsNoField) {
  expect_error(ErrorCode::usage, "the input 'image' of the program; there are input, target", [] {
    match_inputs({}, {{"image"}, {"tokens"}, {"labels", true}}, {"input", "target"});
  });
  expect_error(ErrorCode::usage, "the input 'target' of the program; there is input", [] {
    match_inputs({}, {{"x"}, {"target", true}}, {"input"});
  });
}

}  // namespace
}  // namespace renkei::data
