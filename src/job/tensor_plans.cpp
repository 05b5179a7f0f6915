#include "job/tensor_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "shard/solve.h"

namespace renkei::job {

void throw_nothing_divided() {
  throw Error(ErrorCode::usage,
              "no operation of the network can be divided among this many devices",
              "choose another number for plan.tensor");
}

void throw_nothing_to_divide_over() {
  throw Error(ErrorCode::usage,
              "--shard says how parameters are divided, but each layer is computed by one rank",
              "add --tensor T, or leave --shard out");
}

namespace {

// More than a node has, or than this, have never paid.
constexpr int kMostAcrossNodes = 8;

std::vector<int> degrees(const Settings& settings, const PlanningRequest& request,
                         const TensorPlans& tensor) {
  const auto wanted = settings.integer_unless_auto("plan.tensor");
  const bool pinned = !settings.text("plan.shard").empty();
  if (!tensor.program && (wanted.value_or(1) > 1 || pinned))
    throw Error(ErrorCode::usage,
                "layers can't be divided where nothing is known of them but what they cost",
                "leave --tensor and --shard out, or name the model instead of its graph");
  if (pinned && wanted == 1) throw_nothing_to_divide_over();
  if (!tensor.program) return {1};
  if (wanted) {
    const auto degree = static_cast<int>(*wanted);
    if (request.devices % degree != 0)
      throw Error(ErrorCode::usage,
                  fmt::format("{} devices are no multiple of the {} that compute each layer "
                              "together",
                              request.devices, degree),
                  "choose --devices and --tensor so that one divides the other");
    return {degree};
  }
  std::vector<int> list;
  int most = kMostAcrossNodes;
  for (const cluster::Nodes& node : request.machine.nodes) most = std::max(most, node.devices);
  for (int degree = 1; degree <= most && request.devices % degree == 0; degree *= 2)
    list.push_back(degree);
  return list;
}

// What the layouts are chosen by: the machine as one group of devices sees it.
shard::Costs costs_of(const plan::Problem& problem) {
  const cluster::DeviceKind& device =
      problem.machine.kinds[static_cast<size_t>(problem.devices.front().kind)];
  const plan::ReduceCosts reduce = plan::reduce_costs(
      problem, {problem.members.begin(), problem.members.begin() + problem.tensor});
  const auto groups = static_cast<int64_t>(problem.devices.size());
  constexpr int64_t kMostSamples = 16;
  const int64_t of_group = std::max<int64_t>(1, problem.batch / groups);
  const int64_t samples = std::min(of_group, kMostSamples);
  return {.flops_per_second = device.flops_per_second * device.efficiency,
          .bytes_per_second = device.memory_bytes_per_second,
          .call_seconds = device.call_seconds,
          .allreduce_latency_seconds = reduce.latency,
          .allreduce_seconds_per_byte = reduce.per_byte,
          .samples = samples,
          .micro_batches = static_cast<double>(of_group) / static_cast<double>(samples),
          .touched_per_byte = 3 + 2 * problem.optimizer_state};
}

// The devices of the machine in groups of `degree`.
void group_devices(plan::Problem& problem, int degree) {
  problem.tensor = degree;
  problem.members = problem.devices;
  problem.devices.clear();
  for (size_t i = 0; i < problem.members.size(); i += static_cast<size_t>(degree))
    problem.devices.push_back(problem.members[i]);
}

}  // namespace

void mark_summed(graph::Graph& graph, const std::vector<shard::Slice>& state) {
  for (size_t i = 0; i < state.size(); ++i) graph.parameters[i].summed = state[i].is_summed();
}

Searched search_plans(const Settings& settings, const PlanningRequest& request,
                      const TensorPlans& tensor, const plan::StepModel& steps,
                      const plan::SearchOptions& options, bool quiet) {
  const double begin = now_seconds();
  const std::vector<int> list = degrees(settings, request, tensor);
  Searched best;
  const auto consider = [&](std::unique_ptr<plan::Problem> problem, size_t searches_left) {
    auto objective = std::make_unique<plan::Objective>(*problem, steps);
    plan::SearchOptions mine = options;
    const double left = options.time_limit_seconds - (now_seconds() - begin);
    mine.time_limit_seconds = std::max(0.5, left / static_cast<double>(searches_left));
    plan::SearchResult result = search_with_progress(*objective, mine, quiet);
    const double seconds = result.best ? result.best->seconds : 0;
    best.tried.push_back({problem->tensor, seconds});
    const bool better = !best.problem ||
                        (result.best && (!best.result.best || seconds < best.result.best->seconds));
    if (!better) return;
    best.objective = std::move(objective);
    best.problem = std::move(problem);
    best.result = std::move(result);
  };
  // Of each number: by cost alone, and with memory dear, so that as many parameters are divided as
  // can be. Without divided samples: what ops on a share of them cost is counted as if it did not
  // grow with the batch, so such plans would look too fast.
  struct Way {
    bool batch;
    double seconds_per_state_byte;
  };
  constexpr Way kWays[]{{false, 0}, {false, 1e-9}};
  const bool only_if_needed =
      tensor.trial == TensorPlans::Trial::if_needed && settings.is_auto("plan.tensor");
  size_t left = 2 * list.size();
  for (const int degree : list) {
    if (degree > 1 && only_if_needed && best.result.best) break;
    if (degree == 1) {
      // Where that will be all, it has all the time.
      consider(std::make_unique<plan::Problem>(planning_problem(settings, request)),
               only_if_needed ? 1 : left);
      left -= 2;
      continue;
    }
    std::vector<shard::Choice> seen;
    for (const Way& way : kWays) {
      auto problem = std::make_unique<plan::Problem>(planning_problem(settings, request));
      group_devices(*problem, degree);
      problem->even_replicas = way.batch;
      shard::SolveOptions solving{.parts = degree,
                                  .batch = way.batch,
                                  .counted_dropout = settings.boolean("compute.dropout"),
                                  .costs = costs_of(*problem),
                                  .pins = shard::parse_pins(settings.text("plan.shard"))};
      solving.costs.seconds_per_state_byte = way.seconds_per_state_byte;
      problem->tensor_ops = shard::solve(*tensor.program, solving).choice;
      const bool known = std::ranges::count(seen, problem->tensor_ops) > 0;
      if (!known && !problem->tensor_ops.empty()) {
        seen.push_back(problem->tensor_ops);
        problem->graph = tensor.make_graph({.part = {.parts = degree},
                                            .choice = problem->tensor_ops,
                                            .pins = solving.pins,
                                            .counted_dropout = solving.counted_dropout});
        consider(std::move(problem), left);
      }
      --left;
    }
  }
  if (!best.problem) throw_nothing_divided();
  best.result.search_seconds = now_seconds() - begin;
  return best;
}

}  // namespace renkei::job
