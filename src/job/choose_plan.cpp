#include "job/choose_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/units.h"
#include "cluster/local_machine.h"
#include "job/no_plan.h"
#include "job/planning.h"
#include "job/tensor_plans.h"
#include "optim/settings.h"
#include "plan/plan_file.h"
#include "plan/search.h"
#include "report/progress.h"
#include "run/op_costs.h"
#include "run/train_options.h"
#include "schedule/evaluate.h"
#include "shard/solve.h"

namespace renkei::job {
namespace {

// Measured for micro-batches of at most so many samples: larger ones take long and tell no more.
constexpr int64_t kMostSamples = 16;

graph::Graph measure_ops(const PlanInputs& inputs, run::Model& model, int64_t batch,
                         double slowdown, report::Progress* progress) {
  run::OpCostOptions costs{.samples = std::clamp<int64_t>(
                               batch / inputs.communicator.transport().size(), 2, kMostSamples),
                           .slowdown = slowdown,
                           .compute = inputs.compute,
                           .progress = {},
                           .inputs = inputs.samples};
  if (progress)
    costs.progress = [=](int64_t done, int64_t total) {
      progress->update({.label = "measuring ops", .done = done, .total = total});
    };
  graph::Graph graph = run::measured_graph(model, costs);
  mark_summed(graph, model.slices);
  return graph;
}

// Beside rank 0 the other cores of its host do the same, because in training they will: ops are
// slower when all cores want the memory. What is wrong with the network, rank 0 will say.
void keep_company(const PlanInputs& inputs, int64_t batch) {
  const comm::Transport& transport = inputs.communicator.transport();
  const std::vector<int> local = comm::local_ranks(transport);
  const auto place = std::ranges::find(local, transport.rank()) - local.begin();
  if (local[0] != 0 || (place + 1) * inputs.threads > sysconf(_SC_NPROCESSORS_ONLN)) return;
  try {
    measure_ops(inputs, inputs.model, batch, 1, nullptr);
  } catch (const Error&) {
  }
}

// What tensors of a step take beside what was predicted: alignment, and pieces between them.
constexpr double kMemoryMargin = 0.05;

PlanningRequest make_request(const Settings& settings, const PlanInputs& inputs, int64_t batch,
                             const cluster::MachineSpeed& speed) {
  comm::Transport& transport = inputs.communicator.transport();
  const auto local = static_cast<int>(comm::local_ranks(transport).size());
  const int hosts = inputs.communicator.cost_model().hosts;
  cluster::Description machine = local_machine(speed, local);
  if (hosts > 1) {
    machine.nodes[0].count = hosts;
    machine.interconnect.link = inputs.communicator.cost_model().between;
  }
  const auto limit =
      static_cast<double>(settings.size_unless_auto("train.device_memory").value_or(0));
  return {.graph = {},
          .machine = machine,
          .devices = transport.size(),
          .batch = batch,
          .memory_bytes = static_cast<int64_t>(limit * (1 - kMemoryMargin)),
          .optimizer_state = static_cast<double>(
              optim::states_per_parameter(run::train_options(settings).update.optimizer)),
          .use_all_devices = true,
          .ranks_share_memory =
              !inputs.own_values && inputs.communicator.local_size() == local && local > 1};
}

// On one host, dividing operations costs more than it saves unless memory is short: then it is
// tried only if nothing else fits.
TensorPlans tensor_plans(const PlanInputs& inputs, const auto& measure) {
  if (!inputs.make_part) return {};
  return {.program = &inputs.program,
          .make_graph =
              [&](const shard::ShardOptions& part) {
                run::Model model = inputs.make_part(part);
                return measure(model);
              },
          .trial = inputs.communicator.cost_model().hosts > 1 ? TensorPlans::Trial::always
                                                              : TensorPlans::Trial::if_needed};
}

ChosenPlan search_plan(const Settings& settings, const PlanInputs& inputs, int64_t batch,
                       const cluster::MachineSpeed& speed) {
  std::optional<report::Progress> progress;
  if (!inputs.quiet) progress.emplace(report::progress_on_stderr());
  const auto local = static_cast<int>(comm::local_ranks(inputs.communicator.transport()).size());
  const double slowdown = std::max(1.0, static_cast<double>(local * inputs.threads) / speed.cores);
  const auto measure = [&](run::Model& model) {
    return measure_ops(inputs, model, batch, slowdown, progress ? &*progress : nullptr);
  };
  PlanningRequest request = make_request(settings, inputs, batch, speed);
  request.graph = measure(inputs.model);
  progress.reset();
  const schedule::ScheduledSteps steps;
  plan::SearchOptions options = plan::search_options(settings);
  if (const auto count = settings.integer_unless_auto("train.micro_batches"))
    options.micro_batches = {static_cast<int>(*count)};
  if (!inputs.schedules.empty()) options.schedules = inputs.schedules;
  const Searched found =
      search_plans(settings, request, tensor_plans(inputs, measure), steps, options, inputs.quiet);
  if (!found.result.best)
    throw_nothing_fits(*found.problem, steps, options, found.result, {"--device-memory", "-n"});
  return {.plan = make_plan(*found.objective, *found.result.best),
          .predicted = predicted_by(*found.objective, *found.result.best)};
}

// What rank 0 has found, for the others.
std::string to_text(const ChosenPlan& chosen) {
  nlohmann::json json{{"plan", to_json(chosen.plan)}};
  if (chosen.predicted)
    json["predicted"] = {{"step_seconds", chosen.predicted->step_seconds},
                         {"bubble", chosen.predicted->bubble},
                         {"memory_bytes", chosen.predicted->memory_bytes}};
  return json.dump();
}

ChosenPlan from_text(const std::string& text) {
  const nlohmann::json json = parse_json(text, "the plan of rank 0");
  ChosenPlan chosen{.plan = plan::plan_from_json(json.at("plan"), "the plan of rank 0"),
                    .predicted = {}};
  if (json.contains("predicted")) {
    const nlohmann::json& predicted = json["predicted"];
    chosen.predicted = Predicted{.step_seconds = predicted["step_seconds"],
                                 .bubble = predicted["bubble"],
                                 .memory_bytes = predicted["memory_bytes"]};
  }
  return chosen;
}

plan::Plan data_plan(const Settings& settings, int ranks) {
  const auto tensor = static_cast<int>(settings.integer_unless_auto("plan.tensor").value_or(1));
  if (ranks % tensor != 0)
    throw Error(ErrorCode::usage,
                fmt::format("{} ranks are no multiple of the {} that compute each layer together",
                            ranks, tensor),
                "choose -n and plan.tensor so that one divides the other");
  if (tensor == 1 && !settings.text("plan.shard").empty()) throw_nothing_to_divide_over();
  const int replicas = ranks / tensor;
  plan::Plan plan =
      plan::data_parallel_plan(plan::infer_batch_sizes(run::batch_request(settings), replicas));
  plan.tensor = tensor;
  plan.kind = plan::kind_of(1, replicas, tensor);
  return plan;
}

// Where nobody has said how operations are divided: as is best on a machine with fast links, where
// memory is dear, so that parameters are divided wherever they can be.
plan::Plan with_strategies(const Settings& settings, plan::Plan plan,
                           const program::Program& program) {
  if (plan.tensor == 1 || !plan.tensor_ops.empty()) return plan;
  plan.tensor_ops =
      shard::solve(program,
                   {.parts = plan.tensor,
                    .batch = false,
                    .counted_dropout = settings.boolean("compute.dropout"),
                    .costs = {.samples = std::max<int64_t>(1, plan.batch.micro),
                              .micro_batches = static_cast<double>(plan.batch.accumulation),
                              .seconds_per_state_byte = 1e-9},
                    .pins = shard::parse_pins(settings.text("plan.shard"))})
          .choice;
  if (plan.tensor_ops.empty()) throw_nothing_divided();
  return plan;
}

}  // namespace

plan::Plan expected_plan(const Settings& settings, int ranks) {
  const std::string& wanted = settings.text("train.plan");
  if (wanted == "data") return data_plan(settings, ranks);
  if (wanted == "auto") {
    // Only the batch is known; who takes how much of it comes later.
    plan::BatchRequest request = run::batch_request(settings);
    const int64_t batch =
        request.global.value_or(request.per_device.value_or(request.micro.value_or(32)) * ranks);
    return plan::data_parallel_plan({.global = batch, .micro = batch, .ranks = ranks});
  }
  plan::Plan plan = plan::load_plan(wanted);
  const plan::BatchRequest request = run::batch_request(settings);
  if (request.global && *request.global != plan.batch.global)
    throw Error(ErrorCode::usage,
                fmt::format("--batch is {}, but the plan {} is for a batch of {}", *request.global,
                            wanted, plan.batch.global),
                "leave --batch out, or plan again");
  plan::check_ranks(plan, ranks, wanted);
  return plan;
}

ChosenPlan choose_plan(const Settings& settings, const PlanInputs& inputs) {
  comm::Transport& transport = inputs.communicator.transport();
  const plan::Plan expected = expected_plan(settings, transport.size());
  const int64_t tensor = settings.integer_unless_auto("plan.tensor").value_or(expected.tensor);
  if (!inputs.make_part && (tensor > 1 || !settings.text("plan.shard").empty()))
    throw Error(ErrorCode::usage, "layers of a model in Python are not divided among ranks",
                "leave plan.tensor and plan.shard out, or export the model and use renkei train");
  if (settings.text("train.plan") != "auto")
    return {with_strategies(settings, expected, inputs.program), {}};
  const comm::Call call{.operation = "planning",
                        .timeout_seconds = 600 + settings.seconds("plan.time_limit") +
                                           settings.seconds("comm.timeout")};
  std::string text;
  cluster::MachineSpeed speed;
  if (transport.rank() == 0) speed = cluster::measure_machine();
  inputs.communicator.barrier(call);
  if (transport.rank() == 0)
    text = to_text(search_plan(settings, inputs, expected.batch.global, speed));
  else
    keep_company(inputs, expected.batch.global);
  auto length = static_cast<int64_t>(text.size());
  inputs.communicator.broadcast(comm::Buffer(std::span(&length, 1)), 0, call);
  text.resize(static_cast<size_t>(length));
  inputs.communicator.broadcast(
      comm::Buffer(std::span(reinterpret_cast<std::byte*>(text.data()), text.size())), 0, call);
  return from_text(text);
}

shard::ShardOptions part_of_rank(const Settings& settings, const plan::Plan& plan, int rank) {
  return {.part = {.parts = plan.tensor, .index = plan::tensor_place(plan, rank).index},
          .choice = plan.tensor_ops,
          .pins = shard::parse_pins(settings.text("plan.shard")),
          .counted_dropout = settings.boolean("compute.dropout")};
}

}  // namespace renkei::job
