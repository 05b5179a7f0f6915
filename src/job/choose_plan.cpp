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
#include "optim/settings.h"
#include "plan/plan_file.h"
#include "plan/search.h"
#include "report/progress.h"
#include "run/op_costs.h"
#include "run/train_options.h"
#include "schedule/evaluate.h"

namespace renkei::job {
namespace {

// Measured for micro-batches of at most so many samples: larger ones take long and tell no more.
constexpr int64_t kMostSamples = 16;

graph::Graph measure_ops(const PlanInputs& inputs, int64_t batch, double slowdown,
                         report::Progress* progress) {
  run::OpCostOptions costs{.samples = std::clamp<int64_t>(
                               batch / inputs.communicator.transport().size(), 2, kMostSamples),
                           .slowdown = slowdown,
                           .compute = inputs.compute};
  if (progress)
    costs.progress = [=](int64_t done, int64_t total) {
      progress->update({.label = "measuring ops", .done = done, .total = total});
    };
  return run::measured_graph(inputs.model, costs);
}

// Beside rank 0 the other cores of its host do the same, because in training they will: ops are
// slower when all cores want the memory. What is wrong with the network, rank 0 will say.
void keep_company(const PlanInputs& inputs, int64_t batch) {
  const comm::Transport& transport = inputs.communicator.transport();
  const std::vector<int> local = comm::local_ranks(transport);
  const auto place = std::ranges::find(local, transport.rank()) - local.begin();
  if (local[0] != 0 || (place + 1) * inputs.threads > sysconf(_SC_NPROCESSORS_ONLN)) return;
  try {
    measure_ops(inputs, batch, 1, nullptr);
  } catch (const Error&) {
  }
}

// What tensors of a step take beside what was predicted: alignment, and pieces between them.
constexpr double kMemoryMargin = 0.05;

plan::Problem make_problem(const Settings& settings, const PlanInputs& inputs, int64_t batch,
                           const cluster::MachineSpeed& speed, report::Progress* progress) {
  comm::Transport& transport = inputs.communicator.transport();
  const auto local = static_cast<int>(comm::local_ranks(transport).size());
  const int hosts = inputs.communicator.cost_model().hosts;
  cluster::Description machine = local_machine(speed, local);
  if (hosts > 1) {
    machine.nodes[0].count = hosts;
    machine.interconnect.link = inputs.communicator.cost_model().between;
  }
  const double slowdown = std::max(1.0, static_cast<double>(local * inputs.threads) / speed.cores);
  const auto limit =
      static_cast<double>(settings.size_unless_auto("train.device_memory").value_or(0));
  return planning_problem(
      settings, {.graph = measure_ops(inputs, batch, slowdown, progress),
                 .machine = machine,
                 .devices = transport.size(),
                 .batch = batch,
                 .memory_bytes = static_cast<int64_t>(limit * (1 - kMemoryMargin)),
                 .optimizer_state = static_cast<double>(
                     optim::states_per_parameter(run::train_options(settings).update.optimizer)),
                 .use_all_devices = true,
                 .ranks_share_memory =
                     !inputs.own_values && inputs.communicator.local_size() == local && local > 1});
}

ChosenPlan search_plan(const Settings& settings, const PlanInputs& inputs, int64_t batch,
                       const cluster::MachineSpeed& speed) {
  std::optional<report::Progress> progress;
  if (!inputs.quiet) progress.emplace(report::progress_on_stderr());
  const plan::Problem problem =
      make_problem(settings, inputs, batch, speed, progress ? &*progress : nullptr);
  progress.reset();
  const schedule::ScheduledSteps steps;
  const plan::Objective objective(problem, steps);
  plan::SearchOptions options = plan::search_options(settings);
  if (const auto count = settings.integer_unless_auto("train.micro_batches"))
    options.micro_batches = {static_cast<int>(*count)};
  if (!inputs.schedules.empty()) options.schedules = inputs.schedules;
  const plan::SearchResult result = search_with_progress(objective, options, inputs.quiet);
  if (!result.best) throw_nothing_fits(problem, steps, options, result, {"--device-memory", "-n"});
  return {.plan = make_plan(objective, *result.best),
          .predicted = predicted_by(objective, *result.best)};
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
  return plan::data_parallel_plan(plan::infer_batch_sizes(run::batch_request(settings), ranks));
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
  if (settings.text("train.plan") != "auto") return {expected, {}};
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

}  // namespace renkei::job
