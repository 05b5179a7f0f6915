#include "base/units.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/base/thrown_error.h"

namespace renkei {
namespace {

using test::thrown_error;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseSize, KnowsPowersOf1024And1000) {
  EXPECT_EQ(parse_size("512"), 512);
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("7B"), 7);
  EXPECT_EQ(parse_size("64KiB"), 65536);
  EXPECT_EQ(parse_size("64K"), 65536);
  EXPECT_EQ(parse_size("1.5GiB"), 1610612736);
  EXPECT_EQ(parse_size("10MB"), 10000000);
  EXPECT_EQ(parse_size("3kB"), 3000);
  EXPECT_EQ(parse_size("2 TiB"), int64_t{2} << 40);
  EXPECT_EQ(parse_size("1e6"), 1000000);
}

TEST(ParseSize, RejectsWhatIsNotASizeAndNamesIt) {
  for (const char* text : {"", "abc", "MiB", "-1", "-1KiB", "12XB", "1 2", "0x10", "inf", "nan",
                           "1.5", "0.5B", "1,5GiB", " 1", "1KiB "}) {
    const Error error = thrown_error([&] { parse_size(text); });
    EXPECT_EQ(error.code, ErrorCode::usage) << text;
    EXPECT_THAT(error.message, HasSubstr(std::string("'") + text + "'"));
    EXPECT_THAT(error.hint, HasSubstr("512MiB"));
  }
}

TEST(ParseSize, RejectsWhatDoesNotFitIn64Bits) {
  EXPECT_EQ(parse_size("8388607TiB"), int64_t{8388607} << 40);
  for (const char* text : {"8388608TiB", "1e19", "1e308TB"})
    EXPECT_THAT(thrown_error([&] { parse_size(text); }).message, HasSubstr("too large")) << text;
}

TEST(FormatSize, ShowsOneDigitUnlessTheNumberIsWhole) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1024), "1 KiB");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(int64_t{3} << 40), "3 TiB");
  EXPECT_EQ(format_size(-2048), "-2 KiB");
  EXPECT_EQ(format_size(std::numeric_limits<int64_t>::max()), "8192 PiB");
}

TEST(FormatSize, NeverRoundsUpTo1024) {
  EXPECT_EQ(format_size((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_size((1 << 20) - 100), "1023.9 KiB");
  EXPECT_EQ(format_size((1 << 30) - 1), "1.0 GiB");
}

TEST(ParseDuration, KnowsUnitsAndPlainSeconds) {
  EXPECT_DOUBLE_EQ(parse_duration("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(parse_duration("15us"), 15e-6);
  EXPECT_DOUBLE_EQ(parse_duration("10s"), 10);
  EXPECT_DOUBLE_EQ(parse_duration("5min"), 300);
  EXPECT_DOUBLE_EQ(parse_duration("5m"), 300);
  EXPECT_DOUBLE_EQ(parse_duration("2h"), 7200);
  EXPECT_DOUBLE_EQ(parse_duration("1.5"), 1.5);
}

TEST(ParseDuration, RejectsWhatIsNotADuration) {
  for (const char* text : {"", "s", "-3s", "5 days", "10KiB", "1e308h", "infinity"}) {
    const Error error = thrown_error([&] { parse_duration(text); });
    EXPECT_EQ(error.code, ErrorCode::usage) << text;
    EXPECT_THAT(error.message, HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(FormatDuration, ChoosesAUnitThatPeopleWouldChoose) {
  EXPECT_EQ(format_duration(0), "0 us");
  EXPECT_EQ(format_duration(15e-6), "15 us");
  EXPECT_EQ(format_duration(0.25), "250 ms");
  EXPECT_EQ(format_duration(3.14), "3.1 s");
  EXPECT_EQ(format_duration(200), "3 min 20 s");
  EXPECT_EQ(format_duration(7260), "2 h 1 min");
  EXPECT_EQ(format_duration(-0.25), "-250 ms");
}

TEST(FormatDuration, NeverRoundsUpToTheNextUnit) {
  EXPECT_EQ(format_duration(0.0009996), "1 ms");
  EXPECT_EQ(format_duration(0.9996), "1.0 s");
  EXPECT_EQ(format_duration(59.96), "1 min 0 s");
  EXPECT_EQ(format_duration(3599.6), "1 h 0 min");
}

TEST(ParseSweep, MultipliesAddsOrIsASingleValue) {
  EXPECT_THAT(parse_sweep("1:16:*2"), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(parse_sweep("1:100:*10"), ElementsAre(1, 10, 100));
  EXPECT_THAT(parse_sweep("4KiB:16KiB:+4KiB"), ElementsAre(4096, 8192, 12288, 16384));
  EXPECT_THAT(parse_sweep("0:5:+2"), ElementsAre(0, 2, 4));
  EXPECT_THAT(parse_sweep("64KiB"), ElementsAre(65536));
  EXPECT_THAT(parse_sweep("3:3:*2"), ElementsAre(3));
}

TEST(ParseSweep, StopsBeforeItWouldOverflow) {
  EXPECT_EQ(parse_sweep("1:8388607TiB:*2").size(), 63u);
  EXPECT_THAT(parse_sweep("4000000TiB:8388607TiB:+4000000TiB"),
              ElementsAre(int64_t{4000000} << 40, int64_t{8000000} << 40));
}

TEST(ParseSweep, RejectsASweepThatDoesNotMoveOrRunsBackwards) {
  for (const char* text : {"1:8", "1:8:", "1:8:*", "1:8:2", "1:8:*1", "1:8:*0", "1:8:+0", "8:1:*2",
                           "0:8:*2", "1:8:*2:3", ":8:*2", "1::+1", "1:8:*1.5", "1:8:-1"})
    EXPECT_EQ(thrown_error([&] { parse_sweep(text); }).code, ErrorCode::usage) << text;
}

TEST(ParseSweep, RejectsASweepThatWouldFillTheMemory) {
  EXPECT_EQ(parse_sweep("1:1000000:+1").size(), 1000000u);
  EXPECT_THAT(thrown_error([] { parse_sweep("1:1TiB:+1"); }).message, HasSubstr("more than"));
}

TEST(FormatCount, GroupsDigitsByThree) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(2626560), "2,626,560");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(-999), "-999");
  EXPECT_EQ(format_count(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

}  // namespace
}  // namespace renkei
