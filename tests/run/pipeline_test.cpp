// Training in stages equals training in one process with the same micro-batches. Ranks are threads
// here, each with a network of its own.
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/thread_transport.h"
#include "data/synth_data.h"
#include "plan/stage_values.h"
#include "run/cut_program.h"
#include "run/trainer.h"
#include "tests/run/networks.h"

namespace renkei::run {
namespace {

struct Trained {
  std::vector<double> losses;
  std::vector<torch::Tensor> state;  // parameters and buffers
  TrainResult result;
};

struct Layout {
  int stages = 1, replicas = 1, micro_batches = 4, chunks = 1;
  std::string schedule = "1f1b";
  bool recompute = false;
  std::vector<int> replicas_of = {};  // of each group, where they differ
  bool sharded = false;               // the optimizer's state is divided among the replicas

  std::string name() const {
    return fmt::format("{} stages × {} replicas, {} micro-batches, {}{}{}{}", stages, replicas,
                       micro_batches, schedule, chunks > 1 ? ", chunks" : "",
                       recompute ? ", recompute" : "", sharded ? ", sharded" : "");
  }
};

// The ops of the network in equal parts.
plan::Plan plan_for(const TestCase& test, const Layout& layout) {
  const CutProgram cut(test.make_model().training.program);
  const graph::Graph& graph = cut.graph();
  const int stages = layout.stages * layout.chunks;
  plan::Plan plan{.kind = plan::PlanKind::pipeline,
                  .stages = stages,
                  .replicas = layout.replicas,
                  .batch = {.global = test.batch,
                            .micro = test.batch / layout.micro_batches / layout.replicas,
                            .accumulation = layout.micro_batches,
                            .ranks = layout.replicas},
                  .schedule = layout.schedule,
                  .chunks = layout.chunks,
                  .sharded_optimizer = layout.sharded};
  const size_t ops = graph.ops.size();
  std::vector<int> stage_of(ops);
  for (int s = 0; s < stages; ++s) {
    const int group = s % layout.stages;
    plan::Stage stage{.recompute = layout.recompute};
    int first = 0;
    const auto count_of = [&](int g) {
      return layout.replicas_of.empty() ? layout.replicas
                                        : layout.replicas_of[static_cast<size_t>(g)];
    };
    for (int g = 0; g < group; ++g) first += count_of(g);
    for (int r = 0; r < count_of(group); ++r) stage.ranks.push_back(first + r);
    for (size_t op = ops * static_cast<size_t>(s) / static_cast<size_t>(stages);
         op < ops * static_cast<size_t>(s + 1) / static_cast<size_t>(stages); ++op) {
      stage.ops.push_back(graph.ops[op].id);
      stage_of[op] = s;
    }
    plan.stage_list.push_back(stage);
  }
  const auto values = plan::stage_values(graph, stage_of, stages);
  for (int s = 0; s < stages; ++s)
    plan.stage_list[static_cast<size_t>(s)].loads = values[static_cast<size_t>(s)].loads;
  return plan;
}

Trained train_by(const TestCase& test, const plan::Plan& plan) {
  Trained outcome;
  comm::run_as_threads(plan.ranks(), [&](comm::Transport& transport) {
    Model model = test.make_model();
    comm::Communicator communicator(transport, {});
    std::vector<double> losses;
    Losses observer(losses);
    const TrainJob job{.model = model,
                       .train_data = *test.data,
                       .held_out = test.held_out.get(),
                       .communicator = communicator,
                       .plan = plan};
    const TrainResult result = train(job, test.options, observer);
    if (transport.rank() != 0) return;
    outcome.losses = losses;
    outcome.result = result;
    for (const torch::Tensor& tensor : model.training.state)
      outcome.state.push_back(tensor.detach().clone());
  });
  return outcome;
}

// One process with the same micro-batches: those of all replicas.
Trained train_alone(const TestCase& test, const Layout& layout) {
  return train_by(
      test,
      plan::data_parallel_plan(plan::infer_batch_sizes(
          {.global = test.batch, .accumulation = layout.micro_batches * layout.replicas}, 1)));
}

void expect_equal(const Trained& got, const Trained& expected, double tolerance) {
  ASSERT_EQ(got.losses.size(), expected.losses.size());
  for (size_t step = 0; step < got.losses.size(); ++step)
    EXPECT_NEAR(got.losses[step] / expected.losses[step], 1, std::max(tolerance, 1e-7))
        << "step " << step;
  ASSERT_EQ(got.state.size(), expected.state.size());
  for (size_t i = 0; i < got.state.size(); ++i) {
    const torch::Tensor a = got.state[i].to(torch::kFloat64),
                        b = expected.state[i].to(torch::kFloat64);
    ASSERT_EQ(a.sizes(), b.sizes()) << i;
    if (a.numel() == 0) continue;
    EXPECT_LE((a - b).abs().max().item<double>(), tolerance * b.abs().max().item<double>())
        << "tensor " << i;
  }
}

class Pipelines : public testing::TestWithParam<std::string> {};

TEST_P(Pipelines, LeaveTheSameBitsAsOneProcess) {
  const TestCase test = test_case(GetParam());
  const Layout alone{.micro_batches = 4};
  const Trained expected = train_alone(test, alone);
  for (const Layout& layout :
       {Layout{.stages = 2, .schedule = "gpipe"}, Layout{.stages = 3, .schedule = "1f1b"},
        Layout{.stages = 2, .chunks = 2, .schedule = "interleaved"},
        Layout{.stages = 4, .schedule = "zero_bubble"},
        Layout{.stages = 2, .schedule = "1f1b", .recompute = true}}) {
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

// Also where the update needs norms of whole parameters.
TEST(Pipelines, LeaveTheSameBitsWithTheStateOfTheOptimizerDivided) {
  TestCase test = test_case("lenet");
  for (const auto kind : {optim::OptimizerKind::adamw, optim::OptimizerKind::lamb}) {
    test.options.update.optimizer = {.kind = kind, .weight_decay = 0.01};
    Layout layout{.stages = 2, .replicas = 2, .micro_batches = 2};
    const Trained whole = train_by(test, plan_for(test, layout));
    layout.sharded = true;
    const Trained divided = train_by(test, plan_for(test, layout));
    expect_equal(divided, whole, 0);
    const auto state = [](const Trained& trained) { return trained.result.memory[0].optimizer; };
    EXPECT_GT(state(whole), 0);
    EXPECT_NEAR(static_cast<double>(state(divided)) / static_cast<double>(state(whole)), 0.5, 0.01);
  }
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
