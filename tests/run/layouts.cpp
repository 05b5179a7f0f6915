#include "tests/run/layouts.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "plan/stage_values.h"
#include "run/cut_program.h"
#include "shard/solve.h"

namespace renkei::run {

std::string Layout::name() const {
  const std::string each = replicas_of.empty() ? fmt::format("{}", replicas)
                                               : fmt::format("{}", fmt::join(replicas_of, " and "));
  return fmt::format("{} stages × {} replicas × {}, {} micro-batches, {}{}{}{}{}", stages, each,
                     tensor, micro_batches, schedule, chunks > 1 ? ", chunks" : "",
                     recompute ? fmt::format(", recompute in {}", segments) : "",
                     sharded ? ", sharded" : "", hosts > 1 ? ", several hosts" : "");
}

plan::Plan plan_for(const TestCase& test, const Layout& layout) {
  plan::Plan divided{.tensor = layout.tensor};
  if (layout.tensor > 1)
    divided.tensor_ops =
        shard::solve(capture::programs_of({.network = test.make_network()},
                                          loss_for(test.objective, *test.data))
                         .training,
                     {.parts = layout.tensor,
                      .batch = layout.split_batch,
                      .costs = {.seconds_per_state_byte = layout.split_batch ? 0 : 1e-9}})
            .choice;
  const CutProgram cut(
      test.make_model(1, {.part = {.parts = layout.tensor}, .choice = divided.tensor_ops})
          .training.program);
  const graph::Graph& graph = cut.graph();
  const int stages = layout.stages * layout.chunks;
  plan::Plan plan{.kind = plan::kind_of(stages, layout.replicas, layout.tensor),
                  .stages = stages,
                  .replicas = layout.replicas,
                  .tensor = layout.tensor,
                  .tensor_ops = divided.tensor_ops,
                  .batch = {.global = test.batch,
                            .micro = test.batch / layout.micro_batches / layout.replicas,
                            .accumulation = layout.micro_batches,
                            .ranks = layout.replicas},
                  .schedule = stages > 1 ? layout.schedule : "accumulate",
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
    for (int r = 0; r < count_of(group) * layout.tensor; ++r)
      stage.ranks.push_back(first * layout.tensor + r);
    for (size_t op = ops * static_cast<size_t>(s) / static_cast<size_t>(stages);
         op < ops * static_cast<size_t>(s + 1) / static_cast<size_t>(stages); ++op) {
      stage.ops.push_back(graph.ops[op].id);
      stage_of[op] = s;
    }
    const auto count = static_cast<int>(stage.ops.size());
    for (int i = 0; layout.segments > 1 && i < layout.segments; ++i)
      stage.segments.push_back(count * (i + 1) / layout.segments - count * i / layout.segments);
    plan.stage_list.push_back(stage);
  }
  const auto values = plan::stage_values(graph, stage_of, stages);
  for (int s = 0; s < stages; ++s)
    plan.stage_list[static_cast<size_t>(s)].loads = values[static_cast<size_t>(s)].loads;
  return plan;
}

Trained train_by(const TestCase& test, const plan::Plan& plan,
                 const comm::CommunicatorOptions& communication, int hosts) {
  Trained outcome;
  comm::ThreadOptions threads;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    threads.hosts.push_back(fmt::format("host-{}", rank * hosts / plan.ranks()));
  const auto train_as_rank = [&](comm::Transport& transport) {
    Model model = test.make_model(
        1,
        {.part = {.parts = plan.tensor, .index = plan::tensor_place(plan, transport.rank()).index},
         .choice = plan.tensor_ops});
    comm::Communicator communicator(transport, communication);
    std::vector<double> losses;
    Losses observer(losses);
    const TrainJob job{.model = model,
                       .train_data = *test.data,
                       .held_out = test.held_out.get(),
                       .communicator = communicator,
                       .plan = plan};
    const TrainResult result = job::train(job, test.options, observer);
    if (transport.rank() != 0) return;
    outcome.losses = losses;
    outcome.result = result;
    for (const torch::Tensor& tensor : model.training.state)
      outcome.state.push_back(tensor.detach().clone());
  };
  comm::run_as_threads(plan.ranks(), train_as_rank, threads);
  return outcome;
}

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

}  // namespace renkei::run
