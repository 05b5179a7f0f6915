// Layers that ranks compute together train as one process does.
#include <gtest/gtest.h>

#include "shard/shard.h"
#include "tests/run/layouts.h"

namespace renkei::run {
namespace {

// After 5 steps, relative to the largest value of each tensor.
constexpr double kTolerance = 1e-5;

void expect_as_alone(const std::string& network, const Layout& layout) {
  SCOPED_TRACE(network + ": " + layout.name());
  const TestCase test = test_case(network);
  expect_equal(train_by(test, plan_for(test, layout), {}, layout.hosts), train_alone(test, layout),
               kTolerance);
}

TEST(TensorParallel, TwoRanksTrainAsOne) {
  for (const char* network : {"mlp", "gpt", "bert", "lenet", "unet"})
    expect_as_alone(network, {.micro_batches = 2, .tensor = 2});
}

TEST(TensorParallel, FourRanksTrainAsOne) {
  for (const char* network : {"mlp", "gpt", "bert"})
    expect_as_alone(network, {.micro_batches = 1, .tensor = 4});
}

TEST(TensorParallel, SamplesAreDividedWhereThatIsCheaper) {
  for (const char* network : {"mlp", "gpt", "bert", "lenet"})
    expect_as_alone(network, {.micro_batches = 1, .tensor = 2, .split_batch = true});
}

TEST(TensorParallel, CombinesWithDataParallelAndPipeline) {
  for (const char* network : {"mlp", "gpt"}) {
    expect_as_alone(network, {.replicas = 2, .micro_batches = 2, .tensor = 2});
    expect_as_alone(network, {.stages = 2, .micro_batches = 2, .tensor = 2});
    expect_as_alone(network,
                    {.stages = 2, .micro_batches = 2, .schedule = "zero_bubble", .tensor = 2});
    expect_as_alone(network, {.stages = 2,
                              .replicas = 2,
                              .micro_batches = 2,
                              .recompute = true,
                              .sharded = true,
                              .hosts = 2,
                              .tensor = 2});
  }
}

TEST(TensorParallel, ClipsByTheNormOfTheWholeGradient) {
  TestCase test = test_case("gpt");
  test.options.update.clip_norm = 0.1;
  const Layout layout{.micro_batches = 1, .tensor = 2};
  expect_equal(train_by(test, plan_for(test, layout)), train_alone(test, layout), kTolerance);
}

// Ranks of a group have different parts of the same parameters, which is no drift.
TEST(TensorParallel, ReplicasOfEachPartAreCompared) {
  TestCase test = test_case("mlp");
  test.options.check_replicas_every = 1;
  for (const int replicas : {1, 2}) {
    const Layout layout{
        .replicas = replicas, .micro_batches = 1, .hosts = 2 * replicas, .tensor = 2};
    expect_equal(train_by(test, plan_for(test, layout), {}, layout.hosts),
                 train_alone(test, layout), kTolerance);
  }
}

}  // namespace
}  // namespace renkei::run
