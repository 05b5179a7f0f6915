// Every feature of training in every layout, against one process with the same micro-batches.
//
// Bit for bit where no sum is made in another order: a replica adds the gradients of its own
// micro-batches first, so that only those with one micro-batch each add up as one process does;
// tied weights add up over stages.
#include <gtest/gtest.h>

#include "data/random_data.h"
#include "data/synth_data.h"
#include "networks/layers.h"
#include "program/builder.h"
#include "tests/run/layouts.h"

namespace renkei::run {
namespace {

constexpr double kReordered = 1e-6;

std::vector<Layout> layouts() {
  return {{.replicas = 2, .micro_batches = 1},
          {.replicas = 3, .micro_batches = 1},
          {.replicas = 4, .micro_batches = 1, .hosts = 2},
          {.replicas = 2, .micro_batches = 2, .recompute = true},
          {.replicas = 2, .micro_batches = 2, .recompute = true, .segments = 3},
          {.replicas = 4, .micro_batches = 1, .sharded = true, .hosts = 2},
          {.stages = 2, .micro_batches = 2},
          {.stages = 2, .micro_batches = 4, .schedule = "gpipe", .recompute = true, .segments = 2},
          {.stages = 2, .micro_batches = 2, .chunks = 2, .schedule = "interleaved"},
          {.stages = 2, .micro_batches = 4, .schedule = "zero_bubble"},
          {.stages = 2, .replicas = 2, .micro_batches = 2, .schedule = "zero_bubble"},
          {.stages = 2, .replicas = 2, .micro_batches = 2, .sharded = true, .hosts = 2},
          {.stages = 2,
           .replicas = 2,
           .micro_batches = 2,
           .chunks = 2,
           .schedule = "interleaved",
           .hosts = 2},
          {.stages = 2, .micro_batches = 2, .replicas_of = {1, 2}}};
}

int replicas(const Layout& layout) {
  return layout.replicas_of.empty()
             ? layout.replicas
             : *std::max_element(layout.replicas_of.begin(), layout.replicas_of.end());
}

Trained train_in(const TestCase& test, const Layout& layout,
                 const comm::CommunicatorOptions& communication = {}) {
  return train_by(test, plan_for(test, layout), communication, layout.hosts);
}

bool adds_in_order(const TestCase& test, const Layout& layout) {
  const bool one_each = replicas(layout) == 1 || layout.micro_batches == 1;
  // Uneven replicas cut a micro-batch in another way; several hosts add by host.
  return one_each && layout.replicas_of.empty() && layout.hosts == 1 && !test.tied;
}

void expect_equal_in_every_layout(const TestCase& test) {
  for (Layout layout : layouts()) {
    SCOPED_TRACE(layout.name());
    Layout alone = layout;
    alone.replicas = layout.replicas_of.empty() ? layout.replicas : 1;
    expect_equal(train_in(test, layout), train_alone(test, alone),
                 adds_in_order(test, layout) ? 0 : kReordered);
  }
}

// Without batch normalisation, whose statistics depend on who has which samples.
TestCase small_case(const std::string& name) {
  TestCase test = test_case(name);
  test.options.steps = 4;
  test.batch = 12;
  return test;
}

TEST(Features, PlainTraining) {
  expect_equal_in_every_layout(small_case("mlp"));
}

TEST(Features, TiedWeightsAndDropout) {
  TestCase test = small_case("gpt");
  for (const Layout& layout : layouts()) {
    SCOPED_TRACE(layout.name());
    if (!layout.replicas_of.empty()) continue;  // masks are drawn for a micro-batch of a replica
    expect_equal(train_in(test, layout), train_alone(test, layout), kReordered);
  }
}

TEST(Features, ClippingByTheNormOfAllStages) {
  TestCase test = small_case("mlp");
  const Trained free = train_alone(test, {});
  test.options.update.clip_norm = 1e-3;
  const Trained clipped = train_alone(test, {});
  ASSERT_NE(clipped.losses.back(), free.losses.back()) << "nothing was clipped";
  expect_equal_in_every_layout(test);
}

TEST(Features, DynamicLossScaleThatLeavesStepsOut) {
  TestCase test = small_case("mlp");
  // The first steps overflow; all ranks must leave out the same ones.
  test.options.steps = 8;
  test.options.update.loss_scale = {.dynamic = true, .scale = 0x1p134, .growth_interval = 2};
  const Trained alone = train_alone(test, {});
  test.options.update.loss_scale = {};
  ASSERT_NE(alone.losses.back(), train_alone(test, {}).losses.back()) << "no step was left out";
  test.options.update.loss_scale = {.dynamic = true, .scale = 0x1p134, .growth_interval = 2};
  expect_equal_in_every_layout(test);
}

TEST(Features, OptimizersThatNeedNormsOfWholeParameters) {
  TestCase test = small_case("mlp");
  for (const auto kind : {optim::OptimizerKind::adamw, optim::OptimizerKind::lamb}) {
    // With an epsilon of 1e-8 a gradient that is nearly zero moves its parameter as far as any
    // other, in a direction that the order of sums decides.
    test.options.update.optimizer = {.kind = kind, .weight_decay = 0.01, .epsilon = 1e-3};
    test.options.learning_rate.learning_rate = 1e-3;
    expect_equal_in_every_layout(test);
  }
}

TEST(Features, BatchesThatDoNotDivide) {
  TestCase test = small_case("mlp");
  test.batch = 13;  // every sample weighs the same
  const Trained one = train_alone(test, {.micro_batches = 1});
  for (const Layout& layout : layouts()) {
    SCOPED_TRACE(layout.name());
    expect_equal(train_in(test, layout), one, kReordered);
  }
}

TEST(Features, SixteenBitsOnTheWire) {
  const TestCase test = small_case("mlp");
  for (const Layout& layout :
       {Layout{.replicas = 4, .micro_batches = 1, .hosts = 2},
        Layout{.stages = 2, .replicas = 2, .micro_batches = 2, .hosts = 4}}) {
    SCOPED_TRACE(layout.name());
    const Trained exact = train_in(test, layout);
    const Trained rounded = train_in(test, layout, {.wire = comm::DType::bf16});
    EXPECT_NE(rounded.losses.back(), exact.losses.back());
    expect_equal(rounded, exact, 2e-2);
  }
}

// Two stages' worth of layers whose outputs depend on more than the sample at hand.
TestCase batch_norm_case() {
  TestCase test = small_case("lenet");
  test.data = std::make_shared<data::RandomData>(
      data::RandomDataOptions{.sample_shape = {3, 8, 8}, .count = 36, .classes = 5});
  test.make_network = [] {
    program::Builder builder("with_batch_norm");
    program::ValueId value =
        builder.input("input", program::DType::f32, {builder.batch(), 3, 8, 8});
    for (const std::string name : {"first", "second", "third"}) {
      value = networks::conv2d(builder, value, name, {.out = 16, .kernel = 3, .padding = 1});
      value = builder.relu_(networks::batch_norm(builder, value, name + "_bn"));
    }
    value = builder.flatten(builder.adaptive_avg_pool2d(value, 1), 1);
    builder.output("output", networks::linear(builder, value, "last", {.out = 5}));
    return networks::Network{
        .training = builder.finish(), .outputs = 5, .random_sample = {.classes = 5}};
  };
  return test;
}

// One process takes as many micro-batches as the layout, each of all replicas' samples. Sums over
// ranks are made in another order, and divided by deviations near zero.
TEST(Features, SynchronisedBatchNorm) {
  TestCase test = batch_norm_case();
  test.options.batch_norm = BatchNormMode::synchronised;
  for (const Layout& layout : layouts()) {
    SCOPED_TRACE(layout.name());
    if (layout.micro_batches > 2) continue;
    Layout alone = layout;
    alone.replicas = 1;
    // With several micro-batches, which samples are in one depends on the replicas.
    if (layout.micro_batches > 1 && replicas(layout) > 1) continue;
    expect_equal(train_in(test, layout), train_alone(test, alone), 2e-5);
  }
}

TEST(Features, BatchNormOfEachReplica) {
  const TestCase test = batch_norm_case();
  for (const Layout& layout : layouts()) {
    if (!layout.replicas_of.empty()) continue;
    SCOPED_TRACE(layout.name());
    const Trained expected = train_by(
        test, plan::data_parallel_plan(plan::infer_batch_sizes(
                  {.global = test.batch, .accumulation = layout.micro_batches}, layout.replicas)));
    expect_equal(train_in(test, layout), expected,
                 layout.hosts == 1 && (layout.replicas == 1 || layout.chunks == 1) ? 0 : 2e-6);
  }
}

TEST(Features, Evaluation) {
  TestCase test = small_case("lenet");
  test.options.steps = 2;
  test.data = std::make_shared<data::MemoryImages>(data::draw_synth_data({.images = 24}));
  test.held_out =
      std::make_shared<data::MemoryImages>(data::draw_synth_data({.first = 24, .images = 75}));
  const Trained one = train_alone(test, {.micro_batches = 1});
  for (const Layout& layout : layouts()) {
    SCOPED_TRACE(layout.name());
    const Trained many = train_in(test, layout);
    ASSERT_TRUE(many.result.evaluation && one.result.evaluation);
    EXPECT_EQ(many.result.evaluation->samples, 75);
    EXPECT_NEAR(many.result.evaluation->loss, one.result.evaluation->loss, 1e-6);
    EXPECT_EQ(many.result.evaluation->accuracy, one.result.evaluation->accuracy);
  }
}

// With bf16 inside, sums in another order may round to another value of 8 bits.
TEST(Features, MixedPrecision) {
  TestCase test = small_case("gpt");
  test.rewrite.bf16 = true;
  const Trained exact = train_alone(small_case("gpt"), {.micro_batches = 1});
  const Trained one = train_alone(test, {.micro_batches = 1});
  ASSERT_NE(one.losses.back(), exact.losses.back());
  for (const Layout& layout : layouts()) {
    if (layout.replicas > 1 || !layout.replicas_of.empty()) continue;
    SCOPED_TRACE(layout.name());
    expect_equal(train_in(test, layout), train_alone(test, layout), kReordered);
  }
}

// The state of the optimizer: divided inside a host where its ranks share memory, over several
// hosts where the plan says so.
TEST(Features, DividedOptimizerHoldsItsShare) {
  TestCase test = small_case("mlp");
  test.options.update.optimizer = {.kind = optim::OptimizerKind::adamw};
  const auto held = [&](const Layout& layout, bool shared_memory) {
    return static_cast<double>(
        train_in(test, layout, {.shared_memory = shared_memory}).result.memory[0].optimizer);
  };
  for (const int stages : {1, 2}) {
    Layout layout{.stages = stages, .replicas = 4, .micro_batches = 1, .hosts = 2 * stages};
    const double whole = held(layout, false);
    EXPECT_GT(whole, 0);
    EXPECT_NEAR(held(layout, true) / whole, 0.5, 0.01);
    layout.sharded = true;
    EXPECT_NEAR(held(layout, true) / whole, 0.25, 0.01);
  }
}

}  // namespace
}  // namespace renkei::run
