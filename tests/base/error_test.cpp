#include "base/error.h"

#include <gtest/gtest.h>

namespace renkei {
namespace {

TEST(Error, HasTheDocumentedExitCodes) {
  EXPECT_EQ(Error(ErrorCode::check, "").exit_code(), 1);
  EXPECT_EQ(Error(ErrorCode::usage, "").exit_code(), 2);
  EXPECT_EQ(Error(ErrorCode::data, "").exit_code(), 3);
  EXPECT_EQ(Error(ErrorCode::communication, "").exit_code(), 4);
  EXPECT_EQ(Error(ErrorCode::memory, "").exit_code(), 5);
  EXPECT_EQ(Error(ErrorCode::bug, "").exit_code(), 70);
}

TEST(Error, NamesItsCode) {
  EXPECT_EQ(name_of(ErrorCode::check), "check");
  EXPECT_EQ(name_of(ErrorCode::usage), "usage");
  EXPECT_EQ(name_of(ErrorCode::data), "data");
  EXPECT_EQ(name_of(ErrorCode::communication), "communication");
  EXPECT_EQ(name_of(ErrorCode::memory), "memory");
  EXPECT_EQ(name_of(ErrorCode::bug), "bug");
}

TEST(Error, IsAStandardExceptionThatSaysItsMessage) {
  try {
    throw Error(ErrorCode::data, "sample 7 is damaged", "pack it again");
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "sample 7 is damaged");
  }
}

TEST(Error, ShowsPeopleTheMessageAndTheHint) {
  EXPECT_EQ(format_for_people(Error(ErrorCode::data, "sample 7 is damaged", "pack it again")),
            "error: sample 7 is damaged\n  hint: pack it again");
  EXPECT_EQ(format_for_people(Error(ErrorCode::data, "sample 7 is damaged")),
            "error: sample 7 is damaged");
}

TEST(Error, KnowsNoRankHostOrStepUntilTold) {
  const Error error(ErrorCode::communication, "rank 3 did not arrive");
  EXPECT_FALSE(error.rank.has_value());
  EXPECT_FALSE(error.step.has_value());
  EXPECT_EQ(error.host, "");
}

}  // namespace
}  // namespace renkei
