#include "tune/space.h"

#include "base/error.h"
#include "tune/sampler.h"

namespace renkei::tune {
namespace {

Space parsed(const std::vector<std::string>& texts) {
  Space space;
  for (const std::string& text : texts) space.parameters.push_back(parse_parameter(text, space));
  return space;
}

TEST(Space, ParametersAreRead) {
  const Space space = parsed(
      {"how=choice:ring,tree", "lr=log:1e-4:0.1", "nb=int:16:512", "k=logint:1:64 if how=tree"});
  EXPECT_EQ(space.parameters[0].choices, (std::vector<std::string>{"ring", "tree"}));
  EXPECT_TRUE(space.parameters[1].logarithmic);
  EXPECT_EQ(space.parameters[2].kind, Kind::integer);
  EXPECT_EQ(space.parameters[3].when, "how");
  EXPECT_EQ(text_of(space.parameters[0], 1), "tree");
  EXPECT_EQ(text_of(space.parameters[2], 128), "128");
}

TEST(Space, MistakesGetASentence) {
  for (const char* text : {"x", "=int:1:2", "x=int:1", "x=int:2:1", "x=int:1:2.5", "x=log:0:1",
                           "x=odd:1:2", "x=int:a:3", "x=int:1:2 if y=1", "x=choice"})
    EXPECT_THROW(parsed({text}), Error) << text;
  EXPECT_THROW(parsed({"x=int:1:2", "x=int:1:3"}), Error);
  EXPECT_THROW(parsed({"h=choice:a,b", "x=int:1:2 if h=c"}), Error);
  EXPECT_THROW(parse_constraint("p*q", parsed({"p=int:1:4", "q=int:1:4"})), Error);
  EXPECT_THROW(parse_constraint("p*r=4", parsed({"p=int:1:4", "q=int:1:4"})), Error);
}

TEST(Space, ConditionsAndConstraintsHoldInEverySuggestion) {
  Space space =
      parsed({"how=choice:ring,tree", "p=int:1:16", "q=int:1:16", "k=int:1:8 if how=tree"});
  space.constraints.push_back(parse_constraint("p*q=16", space));
  std::vector<Trial> trials;
  for (int i = 0; i < 60; ++i) {
    const Point point = suggest(space, trials, i, {.seed = 5});
    EXPECT_EQ(point.at("p") * point.at("q"), 16);
    EXPECT_EQ(point.contains("k"), point.at("how") == 1);
    trials.push_back({.number = i, .point = point, .loss = point.at("p")});
  }
}

TEST(Space, AConstraintThatCannotHoldIsSaid) {
  Space space = parsed({"p=int:2:3", "q=int:2:3"});
  space.constraints.push_back(parse_constraint("p*q=25", space));
  EXPECT_THROW(suggest(space, {}, 0, {}), Error);
}

}  // namespace
}  // namespace renkei::tune
