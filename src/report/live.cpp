#include "report/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "timeline/recorder.h"

namespace renkei::report {
namespace {

// A job is said to hang when nothing moves for so many of its usual steps, and so many seconds.
constexpr double kStepsOfSilence = 10, kSecondsOfSilence = 5;
constexpr size_t kLastSteps = 32;

bool waits_for_others(const std::string& task) {
  return task == "receive" || task == "reduce" || task == "norm" || task == "loss" ||
         task == "update";
}

std::string in_words(const timeline::RankTimeline& rank) {
  const timeline::Operation& last = rank.last;
  if (last.step < 0) return fmt::format("rank {} has not begun a step", rank.info.rank);
  return fmt::format("rank {} is {} {} of step {} (micro-batch {}, stage {})", rank.info.rank,
                     last.inside() ? "in" : "after", last.name, last.step, last.index, last.stage);
}

// Who is not waiting for others, or, if all are, who is the furthest behind.
int culprit_of(const std::vector<timeline::RankTimeline>& ranks) {
  const auto behind = [](const timeline::RankTimeline& rank) {
    const bool waits = rank.last.inside() && waits_for_others(rank.last.name);
    return std::tuple(waits, rank.last.step, rank.last.entered);
  };
  const auto worst = std::ranges::min_element(ranks, {}, behind);
  return worst->info.rank;
}

}  // namespace

LiveStatus live_status(const std::vector<timeline::RankTimeline>& ranks, double now) {
  LiveStatus status;
  if (ranks.empty()) {
    status.sentence = "no rank has written anything yet";
    return status;
  }
  double seen = 0;
  status.steps = INT64_MAX;
  status.finished = true;
  std::vector<double> seconds, rates;
  for (const auto& rank : ranks) {
    seen = std::max(seen, rank.info.wall_seconds + rank.last_seen);
    status.steps = std::min(status.steps, rank.steps.empty() ? 0 : rank.steps.back().step + 1);
    status.finished = status.finished && rank.finished;
    status.operations.push_back(in_words(rank));
    const size_t first = rank.steps.size() - std::min(kLastSteps, rank.steps.size());
    for (size_t s = first; s < rank.steps.size(); ++s) {
      const timeline::StepRecord& step = rank.steps[s];
      seconds.push_back(step.times.seconds);
      if (step.times.seconds > 0)
        rates.push_back(static_cast<double>(step.samples) / step.times.seconds);
    }
  }
  status.step_seconds = timeline::quantile(seconds, 0.5);
  status.samples_per_second = timeline::quantile(rates, 0.5);
  status.quiet_seconds = std::max(0.0, now - seen);
  const bool hangs = !status.finished && status.quiet_seconds > kSecondsOfSilence &&
                     status.quiet_seconds > kStepsOfSilence * status.step_seconds;
  if (status.finished) {
    status.sentence = fmt::format("finished after {} steps", status.steps);
  } else if (hangs) {
    status.culprit = culprit_of(ranks);
    const auto place =
        std::ranges::find(ranks, status.culprit, [](const auto& rank) { return rank.info.rank; });
    status.sentence = fmt::format("nothing has moved for {}: {}, and the others wait for it",
                                  format_duration(status.quiet_seconds), in_words(*place));
  } else {
    status.sentence = fmt::format("{} steps done, {} each, {:.0f} samples/s", status.steps,
                                  format_duration(status.step_seconds), status.samples_per_second);
  }
  return status;
}

nlohmann::json to_json(const LiveStatus& status) {
  return {{"steps", status.steps},
          {"quiet_seconds", status.quiet_seconds},
          {"step_seconds", status.step_seconds},
          {"samples_per_second", status.samples_per_second},
          {"finished", status.finished},
          {"culprit", status.culprit},
          {"sentence", status.sentence},
          {"operations", status.operations}};
}

std::string prometheus_text(const LiveStatus& status,
                            const std::vector<timeline::RankTimeline>& ranks) {
  std::string text;
  const auto family = [&](const char* name, const char* kind, const char* help) {
    text += fmt::format("# HELP renkei_{0} {2}\n# TYPE renkei_{0} {1}\n", name, kind, help);
  };
  const auto one = [&](const char* name, const char* kind, const char* help, double value) {
    family(name, kind, help);
    text += fmt::format("renkei_{} {:.9g}\n", name, value);
  };
  one("steps_total", "counter", "Steps that all ranks have done.",
      static_cast<double>(status.steps));
  one("step_seconds", "gauge", "Median of the last steps.", status.step_seconds);
  one("samples_per_second", "gauge", "Of all ranks, median of the last steps.",
      status.samples_per_second);
  one("quiet_seconds", "gauge", "Since any rank was seen to do anything.", status.quiet_seconds);
  family("rank_seconds_total", "counter", "Time of a rank in steps, by category.");
  for (const auto& rank : ranks) {
    timeline::StepTimes sum;
    for (const timeline::StepRecord& step : rank.steps) sum += step.times;
    for (int c = 0; c < timeline::kCategories; ++c) {
      const auto category = static_cast<timeline::Category>(c);
      text += fmt::format("renkei_rank_seconds_total{{rank=\"{}\",category=\"{}\"}} {:.9g}\n",
                          rank.info.rank, name_of(category), sum[category]);
    }
  }
  family("memory_bytes", "gauge", "Of a rank's process.");
  for (const auto& rank : ranks)
    if (!rank.steps.empty())
      text += fmt::format("renkei_memory_bytes{{rank=\"{}\"}} {}\n", rank.info.rank,
                          rank.steps.back().memory_bytes);
  return text;
}

}  // namespace renkei::report
