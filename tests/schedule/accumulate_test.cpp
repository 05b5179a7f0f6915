#include "schedule/accumulate.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/thrown_error.h"

namespace renkei::schedule {
namespace {

using test::thrown_error;

TEST(Accumulate, OrdersEachMicroBatchBeforeTheNextAndReducesOnce) {
  using enum TaskKind;
  const std::vector<Task> expected{{load, 0},    {forward, 0},  {backward, 0}, {load, 1},
                                   {forward, 1}, {backward, 1}, {reduce, 0},   {update, 0}};
  EXPECT_EQ(accumulate(2), expected);
}

TEST(Schedule, IsTheSameForEveryRankOfADataParallelPlan) {
  const plan::Plan plan =
      plan::data_parallel_plan({.global = 24, .micro = 2, .accumulation = 3, .ranks = 4});
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(make_schedule(plan, rank), accumulate(3));
}

TEST(Schedule, RefusesANameItDoesNotKnow) {
  EXPECT_EQ(thrown_error([] { make_schedule({.schedule = "backwards"}, 0); }).code,
            ErrorCode::usage);
}

}  // namespace
}  // namespace renkei::schedule
