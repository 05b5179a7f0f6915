#include "report/progress.h"

#include <gmock/gmock.h>

#include <limits>
#include <vector>

#include "report/table.h"

namespace renkei::report {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// The clock is a plain function, so its time lives outside of the fixture.
double test_seconds = 0;

class ProgressTest : public testing::Test {
 protected:
  void SetUp() override { test_seconds = 1000; }

  ProgressOptions options(bool terminal, int columns = 100) {
    return {.terminal = terminal,
            .columns = columns,
            .sink = [this](std::string_view text) { written_.emplace_back(text); },
            .clock = [] { return test_seconds; }};
  }

  static ProgressState training(int64_t step) {
    return {.label = "epoch 2/5  step",
            .done = step,
            .total = 300,
            .rate = 1234.4,
            .rate_unit = "samples",
            .loss = 0.1234};
  }

  static ProgressState writing(int64_t done, std::optional<int64_t> total) {
    return {.label = "writing", .done = done, .total = total, .unit = "images"};
  }

  std::vector<std::string> written_;
};

TEST_F(ProgressTest, ShowsTrainingAsABarOnATerminal) {
  Progress progress(options(true, 87));
  progress.update(training(110));
  test_seconds += 10;  // ten steps, so 180 more take 180 s
  progress.update(training(120));
  EXPECT_THAT(written_,
              ElementsAre("\repoch 2/5  step 110/300  [###########...................]  1234 "
                          "samples/s  loss 0.123\x1b[K",
                          "\repoch 2/5  step 120/300  [########............]  1234 samples/s  "
                          "loss 0.123  3:00 left\x1b[K"));
  for (const std::string& line : written_)
    EXPECT_LT(display_width(line) - 4, 87) << line;  // "\r" and "\x1b[K" move nothing
}

TEST_F(ProgressTest, EndsTheBarWithWhatItTook) {
  Progress progress(options(true));
  progress.update(training(0));
  test_seconds += 3725;
  progress.update(training(300));
  progress.finish();
  progress.finish();
  ASSERT_THAT(written_, SizeIs(3));
  EXPECT_THAT(written_[2], EndsWith("  took 1:02:05\x1b[K\n"));
  EXPECT_THAT(written_[2], Not(HasSubstr("left")));
}

TEST_F(ProgressTest, DrawsAtMostTenTimesASecond) {
  Progress progress(options(true));
  for (int step = 0; step < 1000; ++step) {
    progress.update(training(step));
    test_seconds += 0.001;
  }
  EXPECT_GE(written_.size(), 9u);
  EXPECT_LE(written_.size(), 11u);
}

TEST_F(ProgressTest, DrawsTheLastStateHoweverSoonItComes) {
  Progress progress(options(true));
  progress.update(training(299));
  progress.update(training(300));
  progress.finish();
  ASSERT_THAT(written_, SizeIs(2));
  EXPECT_THAT(written_[1], HasSubstr("step 300/300"));
}

TEST_F(ProgressTest, WritesPlainLinesElsewhereEveryFewSecondsAndFirstAndLast) {
  Progress progress(options(false));
  for (int done = 0; done <= 120; done += 10) {
    progress.update(writing(done, 120));
    if (done < 120) test_seconds += 1;
  }
  progress.finish();
  EXPECT_THAT(written_, ElementsAre("writing 0/120 images\n",
                                    "writing 50/120 images  10 images/s  0:07 left\n",
                                    "writing 100/120 images  10 images/s  0:02 left\n",
                                    "writing 120/120 images  10 images/s  took 0:12\n"));
}

TEST_F(ProgressTest, HasNoBarAndNoEndWithoutATotal) {
  Progress progress(options(true));
  progress.update(writing(0, std::nullopt));
  test_seconds += 4;
  progress.update(writing(10, std::nullopt));
  progress.finish();
  EXPECT_THAT(written_,
              ElementsAre("\rwriting 0 images\x1b[K", "\rwriting 10 images  2.5 images/s\x1b[K",
                          "\rwriting 10 images  2.5 images/s  took 0:04\x1b[K\n"));
}

TEST_F(ProgressTest, FitsInEveryWidth) {
  for (int columns = 1; columns <= 150; ++columns) {
    written_.clear();
    Progress progress(options(true, columns));
    progress.update(training(100));
    test_seconds += 10;
    progress.update(training(120));
    progress.finish();
    for (const std::string& text : written_) {
      const std::string line = text.substr(1, text.find('\x1b') - 1);
      EXPECT_LT(display_width(line), columns) << line;
    }
  }
}

TEST_F(ProgressTest, LeavesOutTheBarFirstAndTheTimeLeftLast) {
  const auto drawn = [&](int columns) {
    written_.clear();
    Progress progress(options(true, columns));
    progress.update(training(100));
    test_seconds += 20;
    progress.update(training(120));
    return written_.back().substr(1, written_.back().find('\x1b') - 1);
  };
  EXPECT_EQ(drawn(200).find(']') - drawn(200).find('['), 31u);
  EXPECT_THAT(drawn(72), HasSubstr("  [##...]  "));
  EXPECT_EQ(drawn(71), "epoch 2/5  step 120/300  1234 samples/s  loss 0.123  3:00 left");
  EXPECT_EQ(drawn(50), "epoch 2/5  step 120/300  loss 0.123  3:00 left");
  EXPECT_EQ(drawn(40), "epoch 2/5  step 120/300  3:00 left");
  EXPECT_EQ(drawn(25), "epoch 2/5  step 120/300");
  EXPECT_EQ(drawn(11), "epoch 2/5 ");
}

TEST_F(ProgressTest, CountsTheSpeedFromWhereAResumedRunBegan) {
  Progress progress(options(false));
  progress.update(writing(900, 1000));
  test_seconds += 10;
  progress.update(writing(910, 1000));
  EXPECT_EQ(written_.back(), "writing 910/1000 images  1 images/s  1:30 left\n");
}

TEST_F(ProgressTest, MeasuresAnewWhenOtherWorkBegins) {
  Progress progress(options(false));
  progress.update(writing(0, 10));
  test_seconds += 100;
  progress.update(writing(10, 10));
  progress.update(writing(0, 500));
  test_seconds += 10;
  progress.update(writing(100, 500));
  EXPECT_EQ(written_.back(), "writing 100/500 images  10 images/s  0:40 left\n");
}

TEST_F(ProgressTest, SurvivesCountsThatMakeNoSense) {
  Progress progress(options(true, 40));
  progress.update(writing(7, 5));
  EXPECT_THAT(written_.back(), HasSubstr("[#################]"));
  test_seconds += 1;
  progress.update(writing(0, 0));
  EXPECT_THAT(written_.back(), HasSubstr("[#################]"));
}

TEST_F(ProgressTest, ShowsALossThatIsTinyHugeOrNotANumber) {
  const auto shown = [&](double loss) {
    written_.clear();
    Progress progress(options(false));
    ProgressState state = training(1);
    state.loss = loss;
    progress.update(state);
    return written_.back().substr(written_.back().find("loss "));
  };
  EXPECT_EQ(shown(2.30259), "loss 2.303\n");
  EXPECT_EQ(shown(0), "loss 0.000\n");
  EXPECT_EQ(shown(1.234e-5), "loss 1.23e-05\n");
  EXPECT_EQ(shown(-0.5), "loss -0.500\n");
  EXPECT_EQ(shown(1e9), "loss 1e+09\n");
  EXPECT_EQ(shown(std::numeric_limits<double>::quiet_NaN()), "loss nan\n");
}

TEST_F(ProgressTest, CountsDaysWhenItTakesThatLong) {
  Progress progress(options(false));
  progress.update(writing(0, 101));
  test_seconds += 3600;
  progress.update(writing(1, 101));
  EXPECT_THAT(written_.back(), EndsWith("  4 d 4 h left\n"));
}

TEST_F(ProgressTest, LeavesTheCursorBelowABarThatAnErrorEnded) {
  { Progress(options(true)).update(training(1)); }
  ASSERT_THAT(written_, SizeIs(2));
  EXPECT_EQ(written_[1], "\n");
}

TEST_F(ProgressTest, SaysNothingWhenNothingWasDone) {
  { Progress(options(true)).finish(); }
  EXPECT_THAT(written_, IsEmpty());
}

TEST_F(ProgressTest, WritesToStderrByDefault) {
  testing::internal::CaptureStderr();
  ProgressOptions on_stderr = progress_on_stderr();
  EXPECT_FALSE(on_stderr.terminal);
  Progress(on_stderr).update(writing(1, 2));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "writing 1/2 images\n");
}

}  // namespace
}  // namespace renkei::report
