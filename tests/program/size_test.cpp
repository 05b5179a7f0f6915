#include "program/size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::program {
namespace {

using testing::HasSubstr;

int64_t value(const char* text, const SymbolValues& symbols = {{"batch", 7}, {"s0", 10}}) {
  return Size::expression(text).value(symbols);
}

std::string message_of(const char* text) {
  try {
    value(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::data);
    return error.message;
  }
  return "no error";
}

TEST(Size, OfANumberIsItself) {
  EXPECT_TRUE(Size(5).is_number());
  EXPECT_EQ(Size(5).value({}), 5);
  EXPECT_EQ(Size(5).str(), "5");
  EXPECT_EQ(Size::expression("2*(3 + 4)"), Size(14));
}

TEST(Size, OfAnExpressionFollowsTheSymbols) {
  EXPECT_EQ(value("batch"), 7);
  EXPECT_EQ(value("batch*49 + 1"), 344);
  EXPECT_EQ(value("(s0 + 1)//2"), 5);
  EXPECT_EQ(value("-batch//2"), -4);
  EXPECT_EQ(value("batch % 4"), 3);
  EXPECT_EQ(value("-batch % 4"), 1);
  EXPECT_EQ(value("s0**2 - 2*s0 + 1"), 81);
  EXPECT_EQ(value("-s0**2"), -100);
  EXPECT_EQ(value("2**batch"), 128);
  EXPECT_EQ(value("s0 - batch - 1"), 2);
  EXPECT_EQ(value("100//s0//3"), 3);
}

TEST(Size, UnderstandsTheFunctionsThatExportWrites) {
  EXPECT_EQ(value("Mod(s0, 4)"), 2);
  EXPECT_EQ(value("PythonMod(-s0, 4)"), 2);
  EXPECT_EQ(value("Max(1, batch, s0)"), 10);
  EXPECT_EQ(value("Min(batch, s0, 8)"), 7);
  EXPECT_EQ(value("FloorDiv(s0, 3)"), 3);
  EXPECT_EQ(value("CleanDiv(s0, 5)"), 2);
  EXPECT_EQ(value("floor(batch/2 - 1/2)"), 3);
  EXPECT_EQ(value("floor(-batch/2)"), -4);
  EXPECT_EQ(value("ceiling(batch/2)"), 4);
  EXPECT_EQ(value("ceiling(-batch/2)"), -3);
  EXPECT_EQ(value("((s0 - 1)//16)*(batch//2) + 1"), 1);
}

TEST(Size, IsWrittenInOneWayHoweverItWasComputed) {
  const Size batch = Size::expression("batch");
  EXPECT_EQ((batch * 2 * 3).text(), "6*batch");
  EXPECT_EQ((Size(2) * batch + batch).text(), "3*batch");
  EXPECT_EQ((batch + 1 + 2).text(), "batch + 3");
  EXPECT_EQ(batch * 0, Size(0));
  EXPECT_EQ(batch + batch * -1, Size(0));
  EXPECT_EQ(Size(3) * 4 + 5, Size(17));
  EXPECT_EQ(Size::expression("batch*49"), Size::expression("49*batch"));
  EXPECT_EQ(Size::expression("s0*batch*s0").text(), "batch*s0**2");
  EXPECT_EQ(Size::expression("2*(3*batch + s0) - s0*5").text(), "6*batch - 3*s0");
  EXPECT_EQ(Size::expression("(s0 + 1)//2").text(), "((s0 + 1)//2)");
  EXPECT_EQ((Size::expression("s0//2") * 3).text(), "3*(s0//2)");
}

TEST(Size, HasTheSameValueInItsNormalForm) {
  for (const char* text : {"(batch + s0)*(batch - 2)*(3 - s0)*(batch + s0 + 1)", "-(-batch)**3",
                           "Max(batch - s0, Mod(s0*2, batch))*2//3", "(batch + 1)**9 % 1000",
                           "2*batch//3 - (-s0)//(2*batch + 1)"}) {
    const Size once = Size::expression(text);
    EXPECT_EQ(Size::expression(once.text()), once) << text;
  }
  EXPECT_EQ(value("(batch + s0)*(batch - 2)*(3 - s0)*(batch + s0 + 1)"), 17 * 5 * -7 * 18);
  EXPECT_EQ(value("-(-batch)**3"), 343);
  EXPECT_EQ(value("Max(batch - s0, Mod(s0*2, batch))*2//3"), 4);
  EXPECT_EQ(value("(batch + 1)**9 % 1000"), 134217728 % 1000);
  EXPECT_EQ(value("2*batch//3 - (-s0)//(2*batch + 1)"), 5);
}

TEST(Size, KnowsTheSymbolsThatItMentions) {
  const Size size = Size::expression("Max(1, s0//2) + batch");
  EXPECT_TRUE(size.mentions("s0"));
  EXPECT_TRUE(size.mentions("batch"));
  EXPECT_FALSE(size.mentions("s"));
  EXPECT_FALSE(size.mentions("Max"));
  EXPECT_FALSE(Size(3).mentions("s0"));
}

TEST(Size, RefusesWhatItDoesNotUnderstandAndQuotesIt) {
  EXPECT_THAT(message_of("Piecewise((s0, s0), (1, 1))"), HasSubstr("Piecewise((s0, s0), (1, 1))"));
  EXPECT_THAT(message_of("sqrt(s0)"), HasSubstr("sqrt, which is not known"));
  EXPECT_THAT(message_of("s0 +"), HasSubstr("ends too early"));
  EXPECT_THAT(message_of(""), HasSubstr("ends too early"));
  EXPECT_THAT(message_of("(s0"), HasSubstr("closing bracket"));
  EXPECT_THAT(message_of("s0 s0"), HasSubstr("unexpected 's'"));
  EXPECT_THAT(message_of("s0 & 1"), HasSubstr("unexpected '&'"));
  EXPECT_THAT(message_of("1.5*s0"), HasSubstr("whole numbers"));
  EXPECT_THAT(message_of("Mod(s0)"), HasSubstr("1 arguments instead of 2"));
}

TEST(Size, RefusesAValueThatIsNone) {
  EXPECT_THAT(message_of("other + 1"), HasSubstr("depends on other"));
  EXPECT_THAT(message_of("s0//(s0 - 10)"), HasSubstr("divides by zero"));
  EXPECT_THAT(message_of("Mod(s0, s0 - 10)"), HasSubstr("divides by zero"));
  EXPECT_THAT(message_of("s0**100"), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(message_of("s0*9223372036854775807"), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(message_of("99999999999999999999"), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(message_of("batch/2"), HasSubstr("not a whole number"));
}

TEST(Size, RefusesWhatWouldTakeTooLongOrTooDeep) {
  EXPECT_NE(message_of((std::string(5000, '(') + "s0").c_str()), "no error");
  EXPECT_NE(message_of((std::string(3000, '-') + "s0").c_str()), "no error");
  EXPECT_NE(message_of(("s0" + std::string(3000, '*')).c_str()), "no error");
  std::string chain = "s0", powers = "s0", products = "(s0+batch)";
  for (int i = 0; i < 900; ++i) chain += "//1", powers += "**2";
  for (int i = 0; i < 300; ++i) products += "*(s0+batch)";
  EXPECT_NE(message_of(chain.c_str()), "no error");
  EXPECT_NE(message_of(powers.c_str()), "no error");
  EXPECT_NE(message_of(products.c_str()), "no error");
  const std::string long_sum = "(s0*s0 + batch + 1)**9*(s0 + batch**2 + 2)**9";
  EXPECT_EQ(Size::expression(long_sum).text(), long_sum);
  EXPECT_EQ(Size::expression(long_sum).value({{"s0", 0}, {"batch", 1}}), 512 * 19683);
  std::string sum = "s0";
  for (int i = 0; i < 500; ++i) sum += " + s0";
  EXPECT_EQ(value(sum.c_str()), 5010);
}

}  // namespace
}  // namespace renkei::program
