#include "sim/scaling.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "sim/what_if.h"

namespace renkei::sim {
namespace {

int64_t batch_on(const Scenario& scenario, int devices) {
  return scenario.batch > 0 ? scenario.batch : scenario.batch_per_device * devices;
}

plan::Problem problem_of(const Scenario& scenario, int devices) {
  plan::Problem problem{.graph = scenario.graph,
                        .machine = scenario.machine,
                        .devices = places(scenario.machine, devices),
                        .batch = batch_on(scenario, devices),
                        .memory_bytes = scenario.memory_bytes,
                        .optimizer_state = scenario.optimizer_state,
                        .bucket_bytes = scenario.step.reduction.bucket_bytes,
                        .replicas_of_a_node_share = scenario.replicas_of_a_node_share};
  return problem;
}

plan::Evaluated data_parallel(const plan::Objective& objective, int devices, int micro_batches) {
  const plan::Layout layout{
      .micro_batches = micro_batches, .cuts = {0, objective.cuts().last()}, .replicas = {devices}};
  if (!objective.possible(layout))
    throw Error(ErrorCode::usage,
                fmt::format("a batch of {} can't be divided into {} micro-batches on {} devices",
                            objective.problem().batch, micro_batches, devices),
                "give each device at least one sample of each micro-batch");
  plan::Evaluated evaluated = objective.evaluate(layout);
  if (!evaluated.fits())
    throw Error(ErrorCode::memory,
                fmt::format("data parallel on {} devices lacks {} of memory on each", devices,
                            format_size(static_cast<int64_t>(evaluated.missing_bytes))),
                "let it be divided: --plan auto, or give a device fewer samples");
  return evaluated;
}

plan::Evaluated layout_of(const Scenario& scenario, const plan::Objective& objective, int devices) {
  if (!scenario.search) return data_parallel(objective, devices, scenario.micro_batches);
  const plan::SearchResult result = search(objective, *scenario.search);
  if (!result.best)
    throw Error(ErrorCode::memory, fmt::format("no plan fits the memory of {} devices", devices),
                "renkei plan says what lacks least");
  return *result.best;
}

// What the estimates must be multiplied with to agree with what a device was measured to do.
double compute_factor(const Scenario& scenario) {
  if (!scenario.device_samples_per_second) return 1;
  Scenario alone = scenario;
  const schedule::ScheduledSteps steps;
  const plan::Problem problem = problem_of(alone, 1);
  const plan::Objective objective(problem, steps);
  const auto samples = static_cast<double>(scenario.batch_per_device);
  const plan::GroupCosts& device = objective.group({0, 1, 1});
  const plan::StageTimes times =
      objective.stage_times(device, device, 0, objective.cuts().last(), samples, false, false);
  const double measured = samples / *scenario.device_samples_per_second;
  if (measured <= times.update)
    throw Error(ErrorCode::usage,
                fmt::format("{} samples/s is more than the update alone allows",
                            *scenario.device_samples_per_second),
                "check the rate and --batch-per-device");
  return (measured - times.update) / times.compute();
}

}  // namespace

ScalingRow simulate_on(const Scenario& scenario, int devices) {
  const schedule::ScheduledSteps steps;
  const plan::Problem problem = problem_of(scenario, devices);
  const plan::Objective objective(problem, steps);
  const plan::Evaluated evaluated = layout_of(scenario, objective, devices);
  StepOptions options = scenario.step;
  options.compute_factor *= compute_factor(scenario);
  ScalingRow row{.devices = devices,
                 .batch = problem.batch,
                 .plan = describe(evaluated.layout),
                 .step = simulate_step(objective, evaluated, options)};
  const int per_node = std::min(
      devices, problem.machine.nodes[static_cast<size_t>(problem.devices[0].nodes)].devices);
  row.reading = read_step(scenario.machine, scenario.data,
                          static_cast<double>(problem.batch) * per_node / devices, row.step.seconds,
                          /*first_epoch=*/false);
  row.step_seconds = std::max(row.step.seconds, row.reading.seconds);
  row.data_seconds = row.step_seconds - row.step.seconds;
  row.samples_per_second = static_cast<double>(problem.batch) / row.step_seconds;
  if (scenario.training_samples > 0) {
    row.training = time_with_failures(scenario.training_samples / row.samples_per_second, devices,
                                      scenario.failures);
    row.training.seconds += scenario.start_seconds;
  }
  return row;
}

std::vector<ScalingRow> simulate_scaling(const Scenario& scenario,
                                         const std::vector<int>& devices) {
  std::vector<ScalingRow> rows;
  for (const int count : devices) rows.push_back(simulate_on(scenario, count));
  double alone = 0;
  try {
    Scenario mean = scenario;  // not whatever the first device is
    for (cluster::DeviceKind& kind : mean.machine.kinds) kind.spread = 0;
    alone = simulate_on(mean, 1).samples_per_second;
  } catch (const Error&) {  // does not fit one device
    alone = rows.front().samples_per_second / rows.front().devices;
  }
  for (ScalingRow& row : rows) row.efficiency = row.samples_per_second / (alone * row.devices);
  return rows;
}

std::vector<Gain> sensitivity(const Scenario& scenario, int devices, double share) {
  const double now = simulate_on(scenario, devices).step_seconds;
  std::vector<Gain> gains;
  for (const Knob& knob : knobs()) {
    Scenario better = scenario;
    const double factor = knob.more_is_better ? 1 + share : 1 / (1 + share);
    change(better.machine, fmt::format("{}={}x", knob.name, factor));
    // The measured rate of a device is that of the machine as it is.
    if (scenario.device_samples_per_second) {
      better.device_samples_per_second.reset();
      better.step.compute_factor *= compute_factor(scenario);
    }
    const double then = simulate_on(better, devices).step_seconds;
    gains.push_back({knob.name, knob.meaning, then, 1 - then / now});
  }
  std::ranges::stable_sort(gains, std::greater<>(), &Gain::gain);
  return gains;
}

}  // namespace renkei::sim
