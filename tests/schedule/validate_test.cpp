#include "schedule/validate.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace renkei::schedule {
namespace {

using plan::ScheduleKind;
using plan::Shape;

const Shape kShape{ScheduleKind::zero_bubble, 3, 4, 1};
const std::vector<int> kEnough{4, 4, 4};

void expect_problem(const Schedule& schedule, const std::string& part) {
  const auto found = problems(schedule, kShape, kEnough);
  EXPECT_TRUE(std::ranges::any_of(
      found, [&](const std::string& text) { return text.find(part) != std::string::npos; }))
      << part << " is not in: " << (found.empty() ? "nothing" : found.front());
}

TaskList::iterator find(TaskList& tasks, const Task& task) {
  return std::ranges::find(tasks, task);
}

TEST(Validate, FindsAMessageThatNobodySends) {
  Schedule schedule = make_schedule(kShape);
  schedule[0].erase(find(schedule[0], {TaskKind::send, 1, 0, 1}));
  expect_problem(schedule, "waits for ever");
}

TEST(Validate, FindsAMessageThatNobodyReceives) {
  Schedule schedule = make_schedule(kShape);
  schedule[0].push_back({TaskKind::send, 3, 0, 1});
  expect_problem(schedule, "stage 1 never receives micro-batch 3 from stage 0");
}

TEST(Validate, FindsMessagesInAnotherOrder) {
  Schedule schedule = make_schedule(kShape);
  for (const TaskKind kind : {TaskKind::expect, TaskKind::receive})
    std::swap(*find(schedule[1], {kind, 0, 1, 0}), *find(schedule[1], {kind, 1, 1, 0}));
  expect_problem(schedule, "gets micro-batch 0 instead");
}

TEST(Validate, FindsAMessageThatWasNotExpected) {
  Schedule schedule = make_schedule(kShape);
  schedule[1].erase(find(schedule[1], {TaskKind::expect, 1, 1, 0}));
  expect_problem(schedule, "is received, though another was expected");
}

TEST(Validate, FindsWorkThatIsLeftOutOrDoneTwice) {
  Schedule schedule = make_schedule(kShape);
  schedule[2].erase(find(schedule[2], {TaskKind::backward_weight, 2, 2}));
  expect_problem(schedule, "stage 2 leaves micro-batch 2 out");
  schedule = make_schedule(kShape);
  schedule[2].push_back({TaskKind::backward_weight, 2, 2});
  expect_problem(schedule, "done twice");
}

TEST(Validate, FindsWorkBeforeWhatItNeeds) {
  Schedule schedule = make_schedule(kShape);
  std::swap(*find(schedule[2], {TaskKind::backward_input, 0, 2}),
            *find(schedule[2], {TaskKind::backward_weight, 0, 2}));
  expect_problem(schedule, "comes before what it needs");
  schedule = make_schedule(kShape);
  std::swap(*find(schedule[0], {TaskKind::forward, 0, 0}),
            *find(schedule[0], {TaskKind::send, 0, 0, 1}));
  expect_problem(schedule, "comes before its value");
}

TEST(Validate, FindsWorkOnTheWrongGroup) {
  Schedule schedule = make_schedule(kShape);
  std::swap(schedule[0], schedule[1]);
  expect_problem(schedule, "is done by group");
}

TEST(Validate, FindsTooManyMicroBatchesInFlight) {
  const auto found = problems(make_schedule(kShape), kShape, {3, 2, 3});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "stage 1 has 3 micro-batches in flight, not 2");
}

}  // namespace
}  // namespace renkei::schedule
