// Parallel training equals training in one process. Ranks are threads here; each has a network of
// its own, as processes would.
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/transport/thread_transport.h"
#include "data/random_data.h"
#include "data/synth_data.h"
#include "job/session.h"
#include "networks/layers.h"
#include "networks/mlp.h"
#include "program/builder.h"
#include "tests/run/networks.h"

namespace renkei::run {
namespace {

struct Outcome {
  std::vector<double> losses;
  torch::Tensor parameters;
  TrainResult result;
};

struct Case {
  const data::Dataset& dataset;
  const data::Dataset* held_out = nullptr;
  std::function<networks::Network()> make_network;
  int64_t batch;
  TrainOptions options;
};

// Trains with so many ranks and micro-batches and returns what rank 0 has at the end.
Outcome train_with(const Case& test, int ranks, int64_t micro_batches) {
  Outcome outcome;
  comm::run_as_threads(ranks, [&](comm::Transport& transport) {
    // Each rank starts elsewhere: the broadcast has to bring them together.
    Model model = make_model_for(test.make_network(),
                                 data::find_field(test.dataset.fields(), data::kTarget)->is_label()
                                     ? networks::Objective::classification
                                     : networks::Objective::regression,
                                 test.dataset, 100 + static_cast<uint64_t>(transport.rank()));
    comm::Communicator communicator(transport, {});
    std::vector<double> losses;
    Losses observer(losses);
    const TrainJob job{.model = model,
                       .train_data = test.dataset,
                       .held_out = test.held_out,
                       .communicator = communicator,
                       .plan = plan::data_parallel_plan(plan::infer_batch_sizes(
                           {.global = test.batch, .accumulation = micro_batches}, ranks))};
    const TrainResult result = job::train(job, test.options, observer);
    if (transport.rank() != 0) return;
    outcome.losses = losses;
    outcome.result = result;
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& parameter : model.trained())
      flat.push_back(parameter.detach().flatten());
    outcome.parameters = torch::cat(flat);
  });
  return outcome;
}

double largest_relative_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

TEST(DataParallel, LeavesTheSameBitsAsOneProcessWithTheSameMicroBatches) {
  // 30 samples in batches of 8: the last batch of an epoch is smaller, so ranks differ in weight.
  const data::RandomData dataset({.sample_shape = {24}, .count = 30, .target_size = 24});
  const Case test{.dataset = dataset,
                  .make_network = [] { return networks::make_mlp(24, 3); },
                  .batch = 8,
                  .options = {.epochs = 3,
                              .learning_rate = {.learning_rate = 0.1},
                              .update = {.optimizer = {.momentum = 0.9}}}};
  for (const int ranks : {2, 4}) {
    const Outcome one = train_with(test, 1, ranks);
    const Outcome many = train_with(test, ranks, 1);
    EXPECT_EQ(one.losses, many.losses);
    EXPECT_TRUE(torch::equal(one.parameters, many.parameters));
    EXPECT_EQ(one.result.checksum, many.result.checksum);
  }
}

// A small network whose outputs depend on more than the sample at hand.
networks::Network batch_norm_network() {
  program::Builder builder("with_batch_norm");
  program::ValueId value =
      builder.input("input", program::DType::f32, {builder.batch(), 3, 12, 12});
  value = networks::conv2d(builder, value, "first", {.out = 16, .kernel = 3});
  value = builder.relu_(networks::batch_norm(builder, value, "first_bn"));
  value = builder.flatten(builder.adaptive_avg_pool2d(value, 1), 1);
  builder.output("output", networks::linear(builder, value, "last", {.out = 10}));
  return {.training = builder.finish(), .outputs = 10, .random_sample = {.classes = 10}};
}

Case with_batch_norm(const data::Dataset& dataset) {
  return {.dataset = dataset,
          .make_network = batch_norm_network,
          .batch = 12,
          .options = {.epochs = 2, .learning_rate = {.learning_rate = 0.1}}};
}

TEST(DataParallel, WithBatchNormEqualsOneProcessWithTheSameMicroBatches) {
  const data::RandomData dataset({.sample_shape = {3, 12, 12}, .count = 36, .classes = 10});
  const Case test = with_batch_norm(dataset);
  const Outcome one = train_with(test, 1, 2), two = train_with(test, 2, 1);
  EXPECT_EQ(one.losses, two.losses);
  EXPECT_TRUE(torch::equal(one.parameters, two.parameters));
}

TEST(DataParallel, SynchronisedBatchNormEqualsOneProcessWithTheWholeBatch) {
  const data::RandomData dataset({.sample_shape = {3, 12, 12}, .count = 36, .classes = 10});
  Case test = with_batch_norm(dataset);
  test.options.batch_norm = BatchNormMode::synchronised;
  const Outcome one = train_with(test, 1, 1);
  for (const int ranks : {2, 3}) {
    const Outcome many = train_with(test, ranks, 1);
    for (size_t step = 0; step < one.losses.size(); ++step)
      EXPECT_NEAR(many.losses[step] / one.losses[step], 1, 1e-5) << "step " << step;
    EXPECT_LT(largest_relative_difference(many.parameters, one.parameters), 1e-4);
  }
  test.options.batch_norm = BatchNormMode::rank;
  EXPECT_GT(largest_relative_difference(train_with(test, 2, 1).parameters, one.parameters), 1e-3);
}

TEST(DataParallel, EveryOptimizerLeavesTheSameBitsAsOneProcess) {
  const data::RandomData dataset({.sample_shape = {24}, .count = 32, .target_size = 24});
  for (const auto kind : {optim::OptimizerKind::adam, optim::OptimizerKind::lars,
                          optim::OptimizerKind::lamb, optim::OptimizerKind::rmsprop_warmup})
    for (const bool clip : {false, true}) {
      Case test{.dataset = dataset,
                .make_network = [] { return networks::make_mlp(24, 3); },
                .batch = 8,
                .options = {.epochs = 2, .learning_rate = {.learning_rate = 0.01}}};
      test.options.update.optimizer.kind = kind;
      test.options.update.bucket_bytes = 4'000;  // several buckets
      if (clip) test.options.update.clip_norm = 0.1;
      const Outcome one = train_with(test, 1, 2);
      EXPECT_EQ(train_with(test, 2, 1).result.checksum, one.result.checksum)
          << optim::name_of(kind);
    }
}

TEST(DataParallel, OverlapDoesNotChangeABit) {
  const data::RandomData dataset({.sample_shape = {64}, .count = 96, .target_size = 64});
  Case test{.dataset = dataset,
            .make_network = [] { return networks::make_mlp(64, 6); },
            .batch = 12,
            .options = {.steps = 20,
                        .learning_rate = {.learning_rate = 0.05},
                        .update = {.optimizer = {.momentum = 0.9}}}};
  test.options.update.bucket_bytes = 20'000;  // several buckets
  const Outcome overlapped = train_with(test, 3, 2);
  test.options.update.overlap = false;
  EXPECT_EQ(train_with(test, 3, 2).result.checksum, overlapped.result.checksum);
}

TEST(DataParallel, EqualsOneProcessForAnyNumberOfRanks) {
  const data::RandomData dataset({.sample_shape = {64}, .count = 96, .target_size = 64});
  const Case test{.dataset = dataset,
                  .make_network = [] { return networks::make_mlp(64, 4); },
                  .batch = 12,
                  .options = {.steps = 20,
                              .learning_rate = {.learning_rate = 0.05},
                              .update = {.optimizer = {.momentum = 0.9}}}};
  const Outcome one = train_with(test, 1, 1);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const int ranks : {2, 3, 4})
    for (const int64_t micro_batches : {1, 3}) {
      const Outcome many =
          train_with(test, ranks, micro_batches == 3 && ranks != 4 ? 2 : micro_batches);
      ASSERT_EQ(many.losses.size(), one.losses.size());
      for (size_t step = 0; step < one.losses.size(); ++step)
        EXPECT_NEAR(many.losses[step] / one.losses[step], 1, 1e-6) << "step " << step;
      EXPECT_LT(largest_relative_difference(many.parameters, one.parameters), 1e-6);
    }
}

TEST(DataParallel, EvaluatesEverySampleOnceWhateverTheRanks) {
  const data::MemoryImages train_images = data::draw_synth_data({.images = 64});
  const data::MemoryImages held_out = data::draw_synth_data({.first = 64, .images = 37});
  const Case test{.dataset = train_images,
                  .held_out = &held_out,
                  .make_network = test_case("lenet").make_network,
                  .batch = 12,
                  .options = {.epochs = 1, .learning_rate = {.learning_rate = 0.05}}};
  const Outcome one = train_with(test, 1, 1);
  for (const int ranks : {2, 3}) {
    const Outcome many = train_with(test, ranks, 1);
    ASSERT_TRUE(many.result.evaluation && many.result.evaluation->accuracy);
    EXPECT_EQ(many.result.evaluation->samples, 37);
    EXPECT_NEAR(many.result.evaluation->loss, one.result.evaluation->loss, 1e-4);
    EXPECT_EQ(many.result.evaluation->accuracy, one.result.evaluation->accuracy);
  }
}

TEST(DataParallel, StepTimesAddUpToTheStep) {
  const data::RandomData dataset({.sample_shape = {16}, .count = 32, .target_size = 16});
  const Case test{.dataset = dataset,
                  .make_network = [] { return networks::make_mlp(16, 2); },
                  .batch = 8,
                  .options = {.epochs = 1}};
  const Outcome outcome = train_with(test, 2, 1);
  ASSERT_EQ(outcome.result.step_times.size(), 4u);
  for (const auto& step : outcome.result.step_times) {
    double sum = 0;
    for (const double part : step.by_category) sum += part;
    EXPECT_NEAR(sum, step.seconds, 1e-9);
    EXPECT_GT(step[timeline::Category::compute], 0);
  }
}

}  // namespace
}  // namespace renkei::run
