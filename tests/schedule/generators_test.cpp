#include "schedule/generators.h"

#include <gtest/gtest.h>

#include "schedule/evaluate.h"
#include "schedule/validate.h"
#include "tests/base/thrown_error.h"
#include "tests/schedule/shapes.h"

namespace renkei::schedule {
namespace {

using plan::ScheduleKind;
using plan::Shape;
using test::thrown_error;

std::string name(const Shape& shape) {
  return fmt::format("{} {} stages {} micro-batches {} chunks", name_of(shape.kind), shape.stages,
                     shape.micro_batches, shape.chunks);
}

// How many micro-batches theory allows in flight on a stage.
int allowed_in_flight(const Shape& shape, int stage) {
  const int all = shape.micro_batches, groups = shape.groups();
  switch (shape.kind) {
    case ScheduleKind::accumulate:
      return 1;
    case ScheduleKind::gpipe:
      return all;
    case ScheduleKind::one_f_one_b:
      return std::min(all, shape.stages - stage);
    case ScheduleKind::zero_bubble:
      return std::min(all, shape.stages);
    case ScheduleKind::interleaved:  // two rounds of the first chunks, less further down
      return std::min(all, 2 * groups);
  }
  return 0;
}

TEST(Generators, MakeSchedulesWithoutProblems) {
  for (const Shape& shape : test::all_shapes()) {
    std::vector<int> allowed;
    for (int stage = 0; stage < shape.stages; ++stage)
      allowed.push_back(allowed_in_flight(shape, stage));
    const auto found = problems(make_schedule(shape), shape, allowed);
    EXPECT_TRUE(found.empty()) << name(shape) << ": " << found.front();
  }
}

TEST(Generators, OneFOneBKeepsFewerActivationsThanGpipe) {
  const Shape gpipe{ScheduleKind::gpipe, 4, 8, 1}, alternating{ScheduleKind::one_f_one_b, 4, 8, 1};
  using List = std::vector<plan::InFlight>;
  EXPECT_EQ(in_flight(make_schedule(gpipe), gpipe), (List{{8, 8}, {8, 8}, {8, 8}, {8, 8}}));
  EXPECT_EQ(in_flight(make_schedule(alternating), alternating),
            (List{{4, 4}, {3, 3}, {2, 2}, {1, 1}}));
}

TEST(Generators, ZeroBubbleKeepsAsManyAndOfLaterStagesOnlyWhatIsPutOff) {
  const Shape shape{ScheduleKind::zero_bubble, 4, 8, 1};
  EXPECT_EQ(in_flight(make_schedule(shape), shape),
            (std::vector<plan::InFlight>{{4, 4}, {4, 3}, {4, 2}, {4, 1}}));
}

TEST(Generators, RefuseNumbersThatDoNotFit) {
  for (const Shape& shape :
       {Shape{ScheduleKind::interleaved, 4, 3, 2}, Shape{ScheduleKind::interleaved, 5, 4, 2},
        Shape{ScheduleKind::accumulate, 2, 4, 1}, Shape{ScheduleKind::gpipe, 4, 4, 2},
        Shape{ScheduleKind::gpipe, 0, 4, 1}, Shape{ScheduleKind::gpipe, 1, 0, 1}})
    EXPECT_EQ(thrown_error([&] { make_schedule(shape); }).code, ErrorCode::usage) << name(shape);
}

TEST(Schedule, GivesEachRankTheListOfItsGroup) {
  plan::Plan plan{.kind = plan::PlanKind::hybrid, .stages = 2, .replicas = 2, .schedule = "1f1b"};
  plan.batch.accumulation = 4;
  plan.stage_list = {{.ops = {"a"}, .ranks = {0, 1}, .loads = true}, {.ops = {"b"}, .ranks = {2}}};
  EXPECT_EQ(make_schedule(plan, 0), make_schedule(plan, 1));
  const TaskList last = make_schedule(plan, 2);
  EXPECT_EQ(last.front(), (Task{TaskKind::expect, 0, 1, 0}));  // it loads nothing
  EXPECT_EQ(thrown_error([&] { make_schedule(plan, 3); }).code, ErrorCode::usage);
}

}  // namespace
}  // namespace renkei::schedule
