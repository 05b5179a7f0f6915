#include "job/planning.h"

#include "report/progress.h"
#include "schedule/evaluate.h"

namespace renkei::job {

plan::Problem planning_problem(const Settings& settings, PlanningRequest request) {
  plan::Problem problem{.graph = std::move(request.graph),
                        .machine = std::move(request.machine),
                        .batch = request.batch,
                        .memory_bytes = request.memory_bytes,
                        .optimizer_state = request.optimizer_state,
                        .use_all_devices = request.use_all_devices,
                        .replicas_of_a_node_share = request.ranks_share_memory};
  problem.devices = places(problem.machine, request.devices);
  if (const auto bucket = settings.size_unless_auto("comm.bucket"))
    problem.bucket_bytes = static_cast<double>(*bucket);
  return problem;
}

plan::SearchResult search_with_progress(const plan::Objective& objective,
                                        plan::SearchOptions options, bool quiet) {
  report::Progress progress(report::progress_on_stderr());
  if (!quiet)
    options.progress = [&](const plan::SearchProgress& state) {
      progress.update({.label = state.doing, .done = state.done, .total = state.total});
    };
  return search(objective, options);
}

Predicted predicted_by(const plan::Objective& objective, const plan::Evaluated& chosen) {
  const plan::Shape shape = chosen.layout.shape();
  Predicted predicted{
      .step_seconds = chosen.seconds,
      .bubble = evaluate(schedule::make_schedule(shape), shape, chosen.times).bubble()};
  const int tensor = objective.problem().tensor;
  predicted.memory_bytes.resize(objective.problem().devices.size() * static_cast<size_t>(tensor));
  for (int group = 0; group < chosen.layout.groups(); ++group) {
    const plan::DeviceRange range = devices_of(chosen.layout, group);
    for (int i = 0; i < range.count; ++i)
      for (int t = 0; t < tensor; ++t)
        predicted.memory_bytes[static_cast<size_t>(range[i]) * static_cast<size_t>(tensor) +
                               static_cast<size_t>(t)] =
            static_cast<int64_t>(chosen.memory[static_cast<size_t>(group)].total());
  }
  return predicted;
}

}  // namespace renkei::job
