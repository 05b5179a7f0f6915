#include "schedule/evaluate.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "tests/base/thrown_error.h"
#include "tests/schedule/shapes.h"

namespace renkei::schedule {
namespace {

using plan::ScheduleKind;
using plan::Shape;
using plan::StageTimes;

double seconds(const Shape& shape, const std::vector<StageTimes>& times) {
  return evaluate(make_schedule(shape), shape, times).seconds;
}

// The formulas of the papers, for equal stages without communication.
TEST(Evaluate, GivesTheTimesOfTheory) {
  for (const int n : {2, 3, 4, 8})
    for (const int m : {8, 16, 24}) {
      if (m % n != 0) continue;
      const auto times = test::equal_stages(n);
      EXPECT_DOUBLE_EQ(seconds({ScheduleKind::gpipe, n, m, 1}, times), 2.0 * (m + n - 1));
      EXPECT_DOUBLE_EQ(seconds({ScheduleKind::one_f_one_b, n, m, 1}, times), 2.0 * (m + n - 1));
      for (const int v : {2, 4})  // stages of 1/v: m work and (n - 1)/v of bubble
        EXPECT_DOUBLE_EQ(
            seconds({ScheduleKind::interleaved, n * v, m, v}, test::equal_stages(n * v)),
            2.0 * (m * v + n - 1));
      const std::vector<StageTimes> thirds(
          static_cast<size_t>(n), {.forward = 1, .backward_input = 1, .backward_weight = 1});
      EXPECT_DOUBLE_EQ(seconds({ScheduleKind::zero_bubble, n, m, 1}, thirds), 3.0 * m + n - 1);
      EXPECT_DOUBLE_EQ(seconds({ScheduleKind::one_f_one_b, n, m, 1}, thirds), 3.0 * (m + n - 1));
    }
}

TEST(Evaluate, KnowsTheBubble) {
  const Shape shape{ScheduleKind::gpipe, 4, 8, 1};
  EXPECT_NEAR(evaluate(make_schedule(shape), shape, test::equal_stages(4)).bubble(), 3.0 / 11,
              1e-12);
}

TEST(Evaluate, SendsOverlapWithComputationButTakeTurnsOnALink) {
  std::vector<StageTimes> times = test::equal_stages(2);
  times[0].send_forward = 3;
  // Forwards end at 1 and 2, arrive at 4 and 7; backward of the second ends at 9.
  times[0].send_backward = 0.25;
  EXPECT_DOUBLE_EQ(seconds({ScheduleKind::gpipe, 2, 2, 1}, times), 7 + 1 + 2 + 0.25 + 1);
}

TEST(Evaluate, ReductionsHideBehindTheLastBackward) {
  const Shape shape{ScheduleKind::accumulate, 1, 2, 1};
  std::vector<StageTimes> times{{.forward = 1, .backward_input = 2, .backward_weight = 2}};
  times[0].reduce = 2;
  times[0].buckets = 1;
  EXPECT_DOUBLE_EQ(seconds(shape, times), 10 + 2);  // one bucket is ready at the end only
  times[0].buckets = 4;
  EXPECT_DOUBLE_EQ(seconds(shape, times), 10 + 0.5);
  times[0].reduce = 8;
  EXPECT_DOUBLE_EQ(seconds(shape, times), 6 + 1 + 8);  // longer than backward: from the first on
  times[0].update = 0.5;
  times[0].gather = 0.25;
  EXPECT_DOUBLE_EQ(seconds(shape, times), 15.75);
}

// The planner prunes by this.
TEST(Evaluate, GrowsWithEachOfTheTimes) {
  Random random(11, RandomUse::random_input, 0, 0);
  const auto draw = [&] { return static_cast<double>(random.uniform(0.0f, 3.0f)); };
  for (const Shape& shape : test::all_shapes()) {
    std::vector<StageTimes> times(static_cast<size_t>(shape.stages));
    for (StageTimes& stage : times)
      stage = {draw(), draw(), draw(), draw(), draw(), draw(), 2, draw(), draw()};
    const Schedule schedule = make_schedule(shape);
    const double before = evaluate(schedule, shape, times).seconds;
    for (StageTimes& stage : times)
      for (double* time :
           {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.send_forward,
            &stage.send_backward, &stage.reduce, &stage.update, &stage.gather}) {
        *time += 1;
        EXPECT_GE(evaluate(schedule, shape, times).seconds, before - 1e-12);
        *time -= 1;
      }
  }
}

TEST(Evaluate, RefusesASchedulesThatWaitsForEver) {
  const Shape shape{ScheduleKind::gpipe, 2, 1, 1};
  Schedule schedule = make_schedule(shape);
  std::erase_if(schedule[0], [](const Task& task) { return task.kind == TaskKind::send; });
  const Error error = test::thrown_error([&] { evaluate(schedule, shape, test::equal_stages(2)); });
  EXPECT_EQ(error.code, ErrorCode::bug);
}

}  // namespace
}  // namespace renkei::schedule
