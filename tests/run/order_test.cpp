// The rules by which tasks wait for each other, in a real step and in virtual time.
//
// One task is held up, and the others go on as far as they can. In virtual time the task takes a
// second and all others none, so that what is over before is what does not wait for it. A real step
// must come to the same places: not less far, or it has a rule that virtual time lacks, and not
// farther, or it lacks one. No clock decides: the task is held until all are where they should be.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "plan/parameter_sets.h"
#include "run/worker.h"
#include "schedule/evaluate.h"
#include "tests/run/layouts.h"

namespace renkei::run {
namespace {

using schedule::TaskList;

struct Held {
  size_t rank, task;
};

// How many tasks of each rank are over while one is held up.
std::vector<size_t> over_in_virtual_time(const schedule::RankedStep& step, const Held& held) {
  schedule::RankedStep timed = step;
  timed.seconds = [&](int rank, const schedule::Task& task) {
    const bool here = static_cast<size_t>(rank) == held.rank;
    return here && task == step.lists[held.rank][held.task] ? 1.0 : 0.0;
  };
  timed.transfer = [](int, int, const schedule::Task&) { return 0.0; };
  std::vector<size_t> over;
  for (const auto& events : evaluate(timed, schedule::Record::all).events)
    over.push_back(static_cast<size_t>(
        std::ranges::count_if(events, [](const schedule::Event& event) { return event.end < 1; })));
  return over;
}

class RealStep {
 public:
  explicit RealStep(size_t ranks) : over_(ranks) {}

  void run(Worker& worker, size_t rank, const Held& held, const std::vector<size_t>& expected) {
    const TaskList& tasks = worker.tasks();
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (rank == held.rank && i == held.task) hold(held, expected);
      worker.execute(tasks[i]);
      over_[rank] = i + 1;
    }
  }

 private:
  void hold(const Held& held, const std::vector<size_t>& expected) {
    const double deadline = now_seconds() + 60;
    const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
    for (size_t rank = 0; rank < over_.size(); ++rank)
      while (over_[rank] < expected[rank] && now_seconds() < deadline) wait();
    for (int i = 0; i < 3; ++i) wait();  // for those that go too far
    for (size_t rank = 0; rank < over_.size(); ++rank)
      EXPECT_EQ(over_[rank], expected[rank]) << "tasks of rank " << rank << ", while rank "
                                             << held.rank << " is at task " << held.task;
  }

  std::vector<std::atomic<size_t>> over_;
};

class Order : public testing::TestWithParam<Layout> {};

TEST_P(Order, IsThatOfVirtualTime) {
  const Layout& layout = GetParam();
  const TestCase test = test_case("mlp");
  const plan::Plan plan = plan_for(test, layout);
  const auto ranks = static_cast<size_t>(plan.ranks());
  schedule::RankedStep step{.lists = std::vector<TaskList>(ranks),
                            .stages = plan.stages,
                            .micro_batches = layout.micro_batches};
  for (const plan::Stage& stage : plan.stage_list) step.ranks_of.push_back(stage.ranks);
  step.reductions.resize(step.ranks_of.size());
  std::barrier all(static_cast<std::ptrdiff_t>(ranks));
  std::vector<std::unique_ptr<RealStep>> steps;
  std::vector<Held> holds;

  comm::run_as_threads(plan.ranks(), [&](comm::Transport& transport) {
    const auto rank = static_cast<size_t>(transport.rank());
    Model model = test.make_model();
    comm::Communicator communicator(transport, {});
    const TrainJob job{.model = model,
                       .train_data = *test.data,
                       .held_out = nullptr,
                       .communicator = communicator,
                       .plan = plan};
    Worker worker(job, test.options);
    step.lists[rank] = worker.tasks();
    all.arrive_and_wait();
    if (rank == 0)
      for (size_t r = 0; r < ranks; ++r)
        for (size_t i = 0; i < step.lists[r].size(); ++i)
          if (is_compute(step.lists[r][i].kind)) {
            holds.push_back({r, i});
            steps.push_back(std::make_unique<RealStep>(ranks));
          }
    all.arrive_and_wait();
    for (size_t i = 0; i < holds.size(); ++i) {
      const auto number = static_cast<int64_t>(i);
      worker.begin_step({.epoch = number, .step_in_epoch = 0, .step = number}, 0.01);
      steps[i]->run(worker, rank, holds[i], over_in_virtual_time(step, holds[i]));
    }
    worker.close();
    communicator.close();
  });
  EXPECT_GE(holds.size(), ranks * 2 * static_cast<size_t>(layout.micro_batches));
}

INSTANTIATE_TEST_SUITE_P(
    OfLayouts, Order,
    testing::Values(Layout{.replicas = 3, .micro_batches = 2},
                    Layout{.stages = 3, .schedule = "gpipe"}, Layout{.stages = 3},
                    Layout{.stages = 2, .chunks = 2, .schedule = "interleaved"},
                    Layout{.stages = 3, .schedule = "zero_bubble"},
                    Layout{.stages = 2, .replicas = 2, .micro_batches = 2},
                    Layout{
                        .stages = 2, .replicas = 2, .micro_batches = 2, .schedule = "zero_bubble"},
                    Layout{.stages = 2, .micro_batches = 2, .replicas_of = {1, 2}}));

}  // namespace
}  // namespace renkei::run
