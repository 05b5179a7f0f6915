// Training in stages equals training in one process with the same micro-batches.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/synth_data.h"
#include "tests/run/layouts.h"

namespace renkei::run {
namespace {

class Pipelines : public testing::TestWithParam<std::string> {};

TEST_P(Pipelines, LeaveTheSameBitsAsOneProcess) {
  const TestCase test = test_case(GetParam());
  const Layout alone{.micro_batches = 4};
  const Trained expected = train_alone(test, alone);
  for (const Layout& layout :
       {Layout{.stages = 2, .schedule = "gpipe"}, Layout{.stages = 3, .schedule = "1f1b"},
        Layout{.stages = 2, .chunks = 2, .schedule = "interleaved"},
        Layout{.stages = 4, .schedule = "zero_bubble"},
        Layout{.stages = 2, .schedule = "1f1b", .recompute = true},
        Layout{.recompute = true, .segments = 4},
        Layout{.stages = 2, .schedule = "zero_bubble", .recompute = true, .segments = 3}}) {
    SCOPED_TRACE(layout.name());
    // Gradients of a weight that two ranks use are summed in another order.
    expect_equal(train_by(test, plan_for(test, layout)), expected, test.tied ? 1e-6 : 0);
  }
}

TEST_P(Pipelines, WithReplicasEqualDataParallel) {
  const TestCase test = test_case(GetParam());
  // Running statistics are those of each replica, as in data parallel training.
  const Trained expected = train_by(test, plan::data_parallel_plan(plan::infer_batch_sizes(
                                              {.global = test.batch, .accumulation = 2}, 2)));
  for (const bool sharded : {false, true}) {
    const Layout layout{.stages = 2, .replicas = 2, .micro_batches = 2, .sharded = sharded};
    SCOPED_TRACE(layout.name());
    // In shared memory, both sum in rank order.
    expect_equal(train_by(test, plan_for(test, layout)), expected, test.tied ? 2e-6 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(OfNetworks, Pipelines,
                         testing::Values("mlp", "lenet", "resnet18", "unet", "gpt"));

// The whole matrix, in `make test-all`.
class SlowPipelines : public testing::TestWithParam<std::string> {};

TEST_P(SlowPipelines, EqualOneProcessInEveryLayout) {
  const TestCase test = test_case(GetParam());
  for (const int replicas : {1, 2}) {
    const int64_t micro_batches = 4 / replicas;
    const Trained expected =
        train_by(test, plan::data_parallel_plan(plan::infer_batch_sizes(
                           {.global = test.batch, .accumulation = micro_batches}, replicas)));
    for (const int stages : {2, 3, 4})  // with 1 it is data parallel training itself
      for (const std::string schedule : {"gpipe", "1f1b", "interleaved", "zero_bubble"})
        for (const bool recompute : {false, true}) {
          const bool interleaved = schedule == "interleaved";
          if (interleaved && micro_batches % stages != 0) continue;  // not allowed
          const Layout layout{.stages = stages,
                              .replicas = replicas,
                              .micro_batches = static_cast<int>(micro_batches),
                              .chunks = interleaved ? 2 : 1,
                              .schedule = schedule,
                              .recompute = recompute};
          SCOPED_TRACE(layout.name());
          expect_equal(train_by(test, plan_for(test, layout)), expected,
                       replicas > 1 ? 2e-6 : (test.tied ? 1e-6 : 0));
        }
  }
}

INSTANTIATE_TEST_SUITE_P(OfNetworks, SlowPipelines,
                         testing::Values("mlp", "lenet", "resnet18", "vgg11", "inception", "unet",
                                         "gpt", "bert"));

TEST(Pipelines, WithUnequalReplicasEqualOneProcess) {
  const TestCase test = test_case("mlp");
  Layout layout{.stages = 3, .replicas = 1, .micro_batches = 2, .replicas_of = {1, 2, 3}};
  const Trained expected = train_alone(test, layout);
  expect_equal(train_by(test, plan_for(test, layout)), expected, 2e-6);
}

TEST(Pipelines, EvaluateAsOneProcess) {
  TestCase test = test_case("lenet");
  test.data = std::make_shared<data::MemoryImages>(data::draw_synth_data({.images = 48}));
  test.held_out =
      std::make_shared<data::MemoryImages>(data::draw_synth_data({.first = 48, .images = 75}));
  const Layout layout{.stages = 3, .micro_batches = 2};
  const Trained one = train_alone(test, layout), many = train_by(test, plan_for(test, layout));
  ASSERT_TRUE(many.result.evaluation && one.result.evaluation);
  EXPECT_EQ(many.result.evaluation->samples, 75);
  EXPECT_NEAR(many.result.evaluation->loss, one.result.evaluation->loss, 1e-5);
  EXPECT_EQ(many.result.evaluation->accuracy, one.result.evaluation->accuracy);
  EXPECT_EQ(many.result.checksum, one.result.checksum);
}

TEST(Pipelines, RefuseAPlanForAnotherModel) {
  const TestCase test = test_case("mlp");
  plan::Plan plan = plan_for(test, {.stages = 2});
  plan.stage_list[1].ops.back() = "999";
  EXPECT_THROW(train_by(test, plan), Error);
}

}  // namespace
}  // namespace renkei::run
