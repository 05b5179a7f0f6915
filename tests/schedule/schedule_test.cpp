#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/base/thrown_error.h"

namespace renkei::schedule {
namespace {

using plan::ScheduleKind;
using test::thrown_error;
using enum TaskKind;

const plan::Plan kData =
    plan::data_parallel_plan({.global = 16, .micro = 2, .accumulation = 2, .ranks = 4});

TEST(Schedule, OfOneStageOrdersEachMicroBatchBeforeTheNextAndReducesOnce) {
  const TaskList expected{{load, 0},    {forward, 0},      {backward, 0}, {load, 1},
                          {forward, 1}, {begin_reduce, 0}, {backward, 1}, {reduce, 0},
                          {update, 0},  {loss, 0}};
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(make_schedule(kData, rank), expected);
}

TEST(Schedule, ReducesAllAndTakesTheNormBeforeAnythingIsUpdated) {
  const Schedule lists =
      make_schedule({ScheduleKind::one_f_one_b, 3, 1, 1}, {.tied = {{0, 2}}, .norm = true});
  const auto end_of = [&](size_t list, size_t count) {
    return TaskList(lists[list].end() - static_cast<std::ptrdiff_t>(count), lists[list].end());
  };
  for (const int stage : {0, 2}) {
    const TaskList expected{{reduce, 0, stage}, {begin_reduce, 0, 3}, {reduce, 0, 3}, {norm, 0},
                            {update, 0, stage}, {update, 0, 3},       {loss, 0}};
    EXPECT_EQ(end_of(static_cast<size_t>(stage), 7), expected);
  }
  EXPECT_EQ(end_of(1, 4), (TaskList{{reduce, 0, 1}, {norm, 0}, {update, 0, 1}, {loss, 0}}));
}

TEST(Schedule, ExpectsOneMessageAheadOfTheWorkThatNeedsIt) {
  const Schedule lists = make_schedule({ScheduleKind::gpipe, 2, 2, 1});
  const TaskList first(lists[1].begin(), lists[1].begin() + 9);
  EXPECT_EQ(first, (TaskList{{load, 0, 1},
                             {expect, 0, 1, 0},
                             {receive, 0, 1, 0},
                             {expect, 1, 1, 0},  // before the forward that it arrives behind
                             {forward, 0, 1},
                             {load, 1, 1},
                             {receive, 1, 1, 0},
                             {forward, 1, 1},
                             {backward, 0, 1}}));
}

TEST(Schedule, InHalvesExpectsNothingOfTheOtherHalf) {
  plan::Plan plan{.kind = plan::PlanKind::pipeline, .stages = 2, .schedule = "1f1b"};
  plan.batch.accumulation = 2;
  plan.stage_list = {{.ops = {"a"}, .ranks = {0}, .loads = true}, {.ops = {"b"}, .ranks = {1}}};
  const Halves last = make_halves(plan, 1, {.loads = {true, false}});
  EXPECT_EQ(last.forward, (TaskList{{expect, 0, 1, 0},
                                    {receive, 0, 1, 0},
                                    {expect, 1, 1, 0},
                                    {forward, 0, 1},
                                    {receive, 1, 1, 0},
                                    {forward, 1, 1}}));
  EXPECT_EQ(last.backward, (TaskList{{backward, 0, 1},
                                     {send, 0, 1, 0},
                                     {begin_reduce, 0, 1},
                                     {backward, 1, 1},
                                     {send, 1, 1, 0},
                                     {reduce, 0, 1},
                                     {update, 0, 1},
                                     {loss, 0}}));
  plan.chunks = 2;
  EXPECT_EQ(thrown_error([&] {
              make_halves(plan, 1, {.loads = {true, false}});
            }).code,
            ErrorCode::usage);
}

TEST(Schedule, OfAnEvaluationOnlyGoesForward) {
  plan::Plan plan{.kind = plan::PlanKind::pipeline, .stages = 2, .schedule = "1f1b"};
  plan.stage_list = {{.ops = {"a"}, .ranks = {0}, .loads = true}, {.ops = {"b"}, .ranks = {1}}};
  EXPECT_EQ(make_evaluation(plan, 0, {true, true}),
            (TaskList{{load, 0, 0}, {forward, 0, 0}, {send, 0, 0, 1}}));
  EXPECT_EQ(make_evaluation(plan, 1, {true, true}),
            (TaskList{{load, 0, 1}, {expect, 0, 1, 0}, {receive, 0, 1, 0}, {forward, 0, 1}}));
}

TEST(Schedule, RefusesANameItDoesNotKnow) {
  EXPECT_EQ(thrown_error([] { make_schedule({.schedule = "backwards"}, 0); }).code,
            ErrorCode::usage);
}

TEST(Schedule, RefusesARankThatThePlanDoesNotHave) {
  EXPECT_EQ(thrown_error([] { make_schedule(kData, 4); }).code, ErrorCode::usage);
}

}  // namespace
}  // namespace renkei::schedule
