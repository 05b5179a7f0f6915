#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::data {

// The action throws an Error of this kind, its message contains `part`, and it is one line. What
// users can cause has a hint, too.
template <typename Action>
void expect_error(ErrorCode code, const std::string& part, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(name_of(error.code), name_of(code)) << error.message;
    EXPECT_THAT(error.message, testing::HasSubstr(part));
    EXPECT_THAT(error.message, testing::Not(testing::HasSubstr("\n")));
    EXPECT_EQ(error.hint.empty(), code == ErrorCode::bug) << error.message;
    return;
  }
  ADD_FAILURE() << "no error was thrown; expected: " << part;
}

}  // namespace renkei::data
