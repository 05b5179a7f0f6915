#include "run/op_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/clock.h"
#include "tests/base/temporary_directory.h"
#include "timeline/rank_file.h"

namespace renkei::run {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Not;

std::vector<std::string> names_of(const std::vector<timeline::Event>& events) {
  std::vector<std::string> names;
  for (const timeline::Event& event : events) names.emplace_back(event.name);
  return names;
}

TEST(OpRecorder, OperationsOfATaskAreSlicesAndWhatTheyCallIsNot) {
  const test::TemporaryDirectory directory;
  const torch::Tensor weight = torch::ones({3, 3}, torch::requires_grad());
  timeline::Event task{.begin = now_seconds(), .step = 7, .index = 2, .stage = 1};
  {
    timeline::RankFile file({.directory = directory.path()}, {.rank = 0, .ranks = 1});
    timeline::Recorder recorder(&file);
    OpRecorder operations(recorder);
    operations.begin_task(task);
    // linear calls addmm or mm; autograd calls its nodes.
    torch::linear(torch::ones({2, 3}), weight).sum().backward();
    operations.end_task();
    torch::relu(weight.detach());  // belongs to no task
  }
  torch::relu(weight.detach());  // and nobody listens any more
  task.end = now_seconds();

  const auto ranks = timeline::read_timeline(directory.path());
  ASSERT_EQ(ranks.size(), 1u);
  const std::vector<std::string> names = names_of(ranks[0].events);
  EXPECT_THAT(names, AllOf(Contains("aten::linear"), Contains("aten::sum"), Contains("MmBackward0"),
                           Not(Contains("aten::mm")), Not(Contains("aten::relu"))));
  double last = task.begin;
  for (const timeline::Event& event : ranks[0].events) {
    EXPECT_EQ(event.lane, timeline::kOperationLane);
    EXPECT_EQ(event.step, 7);
    EXPECT_EQ(event.index, 2);
    EXPECT_EQ(event.stage, 1);
    EXPECT_GE(event.begin, last) << "they do not overlap";
    EXPECT_LE(event.end, task.end);
    last = event.end;
  }
}

}  // namespace
}  // namespace renkei::run
