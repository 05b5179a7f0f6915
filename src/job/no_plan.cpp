#include "job/no_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "plan/remedy.h"

namespace renkei::job {

void throw_nothing_fits(const plan::Problem& problem, const plan::StepModel& steps,
                        const plan::SearchOptions& options, const plan::SearchResult& result,
                        const RemedyFlags& flags) {
  const auto memory = [&](int64_t bytes) { return format_size(bytes); };
  const int64_t limit =
      problem.memory_bytes > 0
          ? problem.memory_bytes
          : problem.machine.kinds[static_cast<size_t>(problem.devices.front().kind)].memory_bytes;
  std::string what = fmt::format("no plan fits {} device{} with {}", problem.devices.size(),
                                 problem.devices.size() == 1 ? "" : "s", memory(limit));
  const auto ops = static_cast<int>(problem.graph.ops.size());
  if (options.stages && *options.stages > ops)
    throw Error(ErrorCode::usage,
                fmt::format("{} stages are asked for, and the network has {} operation{} that can "
                            "be put into one",
                            *options.stages, ops, ops == 1 ? "" : "s"),
                "ask for fewer stages");
  if (result.rejected.empty())
    throw Error(
        ErrorCode::usage,
        fmt::format("there is no layout with these stages, schedule and micro-batches on {} "
                    "devices",
                    problem.devices.size()),
        "leave --stages, --schedule or --micro-batches out; interleaved needs micro-batches "
        "that are a multiple of the groups, accumulate has one stage");
  const plan::Evaluated& closest = result.rejected.front().evaluated;
  what += fmt::format(": the closest, {}, lacks {} on a device", describe(closest.layout),
                      memory(static_cast<int64_t>(closest.missing_bytes)));
  // In the time that the search has left, but long enough to say something.
  constexpr double kLeastSeconds = 1;
  plan::SearchOptions trials = options;
  trials.time_limit_seconds =
      std::max(kLeastSeconds, options.time_limit_seconds - result.search_seconds);
  const plan::Remedy remedy = find_remedy(problem, steps, trials);
  std::vector<std::string> ways;
  if (remedy.memory_bytes)
    ways.push_back(fmt::format("{} {:.0f}MiB", flags.memory,
                               std::ceil(static_cast<double>(*remedy.memory_bytes) / (1 << 20))));
  if (remedy.devices) ways.push_back(fmt::format("{} {}", flags.devices, *remedy.devices));
  if (remedy.batch) ways.push_back(fmt::format("--batch {}", *remedy.batch));
  throw Error(ErrorCode::memory, what,
              ways.empty()
                  ? "no memory, number of devices or batch would help"
                  : "the least that would fit: " + fmt::format("{}", fmt::join(ways, ", or ")));
}

}  // namespace renkei::job
