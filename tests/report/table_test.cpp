#include "report/table.h"

#include <gtest/gtest.h>

#include "tests/base/thrown_error.h"

namespace renkei::report {
namespace {

TEST(Table, AlignsItsColumns) {
  Table table({{"algorithm"}, {"size", Align::right}, {"time", Align::right}, {"note"}});
  table.add_row({"ring", "64 MiB", "12.1 ms", "chosen"});
  table.add_row({"halving-doubling", "8 B", "3 us", ""});
  EXPECT_EQ(table.text(),
            "algorithm           size     time  note\n"
            "----------------  ------  -------  ------\n"
            "ring              64 MiB  12.1 ms  chosen\n"
            "halving-doubling     8 B     3 us\n");
}

TEST(Table, HasAHeaderAlsoWithoutRows) {
  EXPECT_EQ(Table({{"rank"}, {"host"}}).text(), "rank  host\n----  ----\n");
}

TEST(Table, AlignsTextThatIsNotAscii) {
  Table table({{"plan"}, {"speed", Align::right}});
  table.add_row({"2×4", "1×"});
  table.add_row({"entraîné", "10.5×"});
  table.add_row({"連携", "é"});
  EXPECT_EQ(table.text(),
            "plan      speed\n"
            "--------  -----\n"
            "2×4          1×\n"
            "entraîné  10.5×\n"
            "連携          é\n");
}

TEST(Table, RefusesARowOfAnotherLength) {
  Table table({{"a"}, {"b"}});
  EXPECT_EQ(test::thrown_error([&] { table.add_row({"1"}); }).code, ErrorCode::bug);
  EXPECT_EQ(test::thrown_error([&] { table.add_row({"1", "2", "3"}); }).code, ErrorCode::bug);
}

TEST(DisplayWidth, CountsColumnsAndNotBytes) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("×"), 1);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("e\xCC\x81"), 1);  // e and a combining accent
  EXPECT_EQ(display_width("連携"), 4);
  EXPECT_EQ(display_width("→…"), 2);
  EXPECT_EQ(display_width("🚀"), 2);
}

TEST(DisplayWidth, TakesBrokenUtf8ByteByByte) {
  EXPECT_EQ(display_width("a\xE9"), 2);
  EXPECT_EQ(display_width("\xE9yz"), 3);
  EXPECT_EQ(display_width("\x80\xFF"), 2);
}

TEST(CutToWidth, NeverCutsACharacterInTwo) {
  EXPECT_EQ(cut_to_width("abc", 5), "abc");
  EXPECT_EQ(cut_to_width("abc", 2), "ab");
  EXPECT_EQ(cut_to_width("é×", 1), "é");
  EXPECT_EQ(cut_to_width("連携", 3), "連");
  EXPECT_EQ(cut_to_width("e\xCC\x81z", 1), "e\xCC\x81");
  EXPECT_EQ(cut_to_width("abc", 0), "");
  EXPECT_EQ(cut_to_width("abc", -1), "");
}

}  // namespace
}  // namespace renkei::report
