#include "tune/command_trial.h"

#include "base/clock.h"
#include "base/error.h"

namespace renkei::tune {
namespace {

TEST(Command, ItsOutputAndCodeComeBack) {
  const auto done = run_command({"sh", "-c", "echo speed 12.5; exit 3"}, 60);
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_EQ(last_number(done.output), 12.5);
  EXPECT_FALSE(done.stopped);
}

TEST(Command, WhatTakesTooLongIsEndedWithItsChildren) {
  const auto done = run_command({"sh", "-c", "sleep 1000 & sleep 1000"}, 0.2);
  EXPECT_TRUE(done.stopped);
}

TEST(Command, AProgramThatIsMissingIsNamed) {
  EXPECT_THROW(run_command({"/no/such/program"}, 60), Error);
}

TEST(Command, PlacesAreFilledAndNumbersFound) {
  EXPECT_EQ(fill_in({"a", "{x}", "--k={x}{y}"}, {{"x", "1"}, {"y", "b"}}),
            (std::vector<std::string>{"a", "1", "--k=1b"}));
  EXPECT_EQ(last_number("took 3 s, 1e-3 per step\n"), 1e-3);
  EXPECT_EQ(last_number("loss=0.25"), 0.25);
  EXPECT_FALSE(last_number("nothing here"));
  EXPECT_FALSE(last_number("nan"));
}

}  // namespace
}  // namespace renkei::tune
