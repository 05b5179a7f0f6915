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

// The receiver must be ready too: stage 1 expects its second message when it has computed the
// first.
TEST(Evaluate, TransfersBeginWhenBothEndsAreReady) {
  std::vector<StageTimes> times = test::equal_stages(2);
  times[0].send_forward = 0.5;
  times[1].forward = 3;
  // Sent at 1, 2, 3, expected at 0, 1.5, 4.5: arrive at 1.5, 2.5, 5, computed at 4.5, 7.5, 10.5.
  const auto result = evaluate(make_schedule({ScheduleKind::gpipe, 2, 3, 1}),
                               {ScheduleKind::gpipe, 2, 3, 1}, times, Record::all);
  for (const Event& event : result.events[1])
    if (event.task == Task{TaskKind::forward, 2, 1}) {
      EXPECT_DOUBLE_EQ(event.end, 10.5);
    }
}

// Ranks with lists of their own: a pair of replicas, one of which is slower, and one stage behind.
TEST(Evaluate, RanksWaitForTheSlowest) {
  RankedStep step{.ranks_of = {{0, 1}, {2}}, .stages = 2, .micro_batches = 2};
  const Schedule groups = make_schedule({ScheduleKind::gpipe, 2, 2, 1});
  step.lists = {groups[0], groups[0], groups[1]};
  step.reductions = {{.seconds = 1, .buckets = 2}, {}};
  step.seconds = [](int rank, const Task& task) {
    return is_compute(task.kind) ? (rank == 1 ? 2.0 : 1.0) : 0.0;
  };
  step.transfer = [](int, int, const Task&) { return 0.25; };
  const Evaluation result = evaluate(step, Record::all);
  // Rank 1 sends at 2 and 4; rank 2 computes until 5.25, then back until 7.25; gradients arrive at
  // 6.5 and 7.5; rank 1 ends at 10.5, and half a second later the second bucket is reduced.
  EXPECT_DOUBLE_EQ(result.seconds, 11);
  EXPECT_DOUBLE_EQ(result.busy_seconds[0], 4);
  EXPECT_DOUBLE_EQ(result.busy_seconds[1], 8);
}

// A group of equal ranks takes the same time as its ranks one by one.
TEST(Evaluate, GivesTheSameForGroupsAndForTheirRanks) {
  Random random(12, RandomUse::random_input, 0, 0);
  const auto draw = [&] { return static_cast<double>(random.uniform(0.0f, 3.0f)); };
  for (const Shape& shape : test::all_shapes()) {
    std::vector<StageTimes> times(static_cast<size_t>(shape.stages));
    for (StageTimes& stage : times)
      stage = {draw(), draw(), draw(), draw(), draw(), draw(), 2, draw(), 0};
    const Schedule schedule = make_schedule(shape);
    RankedStep step{.stages = shape.stages, .micro_batches = shape.micro_batches};
    for (const TaskList& list : schedule) step.lists.insert(step.lists.end(), 2, list);
    for (int s = 0; s < shape.stages; ++s) {
      step.ranks_of.push_back({2 * shape.group_of(s), 2 * shape.group_of(s) + 1});
      step.reductions.push_back({times[static_cast<size_t>(s)].reduce, 2});
    }
    step.seconds = [&](int, const Task& task) {
      const StageTimes& stage = times[static_cast<size_t>(task.stage)];
      switch (task.kind) {
        case TaskKind::forward:
          return stage.forward;
        case TaskKind::backward:
          return stage.backward();
        case TaskKind::backward_input:
          return stage.backward_input;
        case TaskKind::backward_weight:
          return stage.backward_weight;
        case TaskKind::update:
          return stage.update;
        default:
          return 0.0;
      }
    };
    step.transfer = [&](int, int, const Task& send) {
      const StageTimes& upper = times[static_cast<size_t>(std::min(send.stage, send.peer))];
      return send.peer > send.stage ? upper.send_forward : upper.send_backward;
    };
    EXPECT_DOUBLE_EQ(evaluate(step).seconds, evaluate(schedule, shape, times).seconds)
        << name_of(shape.kind);
  }
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
