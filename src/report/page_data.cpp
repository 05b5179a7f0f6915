#include "report/page_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/version.h"
#include "report/replay.h"

namespace renkei::report {
namespace {

using nlohmann::json;
using timeline::Category;
using timeline::StepTimes;

constexpr size_t kMostSteps = 1000, kMostSlices = 24'000, kMostPoints = 2000;

// Six digits: microseconds of a run of seconds, and half the bytes of a full number.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

json categories_of(const StepTimes& times) {
  json object = json::object();
  for (int c = 0; c < timeline::kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    object[std::string(name_of(category))] = rounded(times[category]);
  }
  return object;
}

const char* name_of_status(RunReport::Status status) {
  switch (status) {
    case RunReport::Status::finished:
      return "finished";
    case RunReport::Status::failed:
      return "failed";
    case RunReport::Status::ended:
      return "ended";
  }
  return "";
}

// Neighbouring steps are averaged where there are too many.
json steps_of(const RunReport& run) {
  const auto& steps = run.attribution.steps;
  const size_t merge = (steps.size() + kMostSteps - 1) / kMostSteps;
  json numbers = json::array(), causes = json::array(), seconds = json::array(),
       compute = json::array();
  for (int c = 0; c < timeline::kCategories; ++c) causes.push_back(json::array());
  for (size_t r = 0; r < run.ranks.size(); ++r) compute.push_back(json::array());
  for (size_t begin = 0; begin < steps.size(); begin += merge) {
    const size_t end = std::min(begin + merge, steps.size());
    const auto count = static_cast<double>(end - begin);
    StepTimes all;
    std::vector<double> busy(run.ranks.size());
    for (size_t s = begin; s < end; ++s)
      for (size_t r = 0; r < busy.size(); ++r) {
        all += steps[s].ranks[r];
        busy[r] += steps[s].ranks[r][Category::compute] / count;
      }
    const double share = 1 / (count * static_cast<double>(busy.size()));
    numbers.push_back(steps[begin].step);
    seconds.push_back(rounded(all.seconds * share));
    for (size_t c = 0; c < all.by_category.size(); ++c)
      causes[c].push_back(rounded(all.by_category[c] * share));
    for (size_t r = 0; r < busy.size(); ++r) compute[r].push_back(rounded(busy[r]));
  }
  return {{"number", numbers}, {"seconds", seconds}, {"causes", causes}, {"compute", compute}};
}

json curves_of(const RunReport& run) {
  json step = json::array(), loss = json::array(), rate = json::array(),
       evaluations = json::array();
  size_t points = 0;
  for (const json& line : run.metrics) points += line.contains("loss") ? 1 : 0;
  const size_t every = std::max<size_t>(1, points / kMostPoints);
  size_t i = 0;
  for (const json& line : run.metrics) {
    if (line.contains("evaluation")) {
      evaluations.push_back(line["evaluation"]);
      evaluations.back()["step"] = line.value("step", 0);
    } else if (line.contains("loss") && i++ % every == 0) {
      const double seconds = line.value("seconds", 0.0);
      step.push_back(line.value("step", 0));
      loss.push_back(line["loss"].is_number() ? json(rounded(line["loss"])) : json());
      rate.push_back(seconds > 0 ? rounded(line.value("samples", 0.0) / seconds) : 0);
    }
  }
  return {{"step", step}, {"loss", loss}, {"rate", rate}, {"evaluations", evaluations}};
}

// The slices of the last steps, as columns: numbers are shorter than names.
json slices_of(const RunReport& run) {
  json names = json::array(), ranks = json::array();
  std::map<std::string, size_t, std::less<>> numbers;
  const size_t each = kMostSlices / std::max<size_t>(1, run.ranks.size());
  for (const auto& rank : run.ranks) {
    json begin = json::array(), length = json::array(), name = json::array(),
         category = json::array(), lane = json::array(), step = json::array(),
         index = json::array(), stage = json::array(), peer = json::array(), bytes = json::array();
    const size_t skip = rank.events.size() - std::min(each, rank.events.size());
    for (size_t i = 0; i < rank.events.size(); ++i) {
      const timeline::Event& event = rank.events[i];
      if (i < skip && event.step >= 0) continue;  // phases are few, and always shown
      const auto number = numbers.try_emplace(std::string(event.name), numbers.size());
      if (number.second) names.push_back(event.name);
      // Microseconds, whole: a page of milliseconds needs no more.
      begin.push_back(std::llround(event.begin * 1e6));
      length.push_back(std::llround(event.seconds() * 1e6));
      name.push_back(number.first->second);
      category.push_back(static_cast<int>(event.category));
      lane.push_back(event.lane);
      step.push_back(event.step);
      index.push_back(event.index);
      stage.push_back(event.stage);
      peer.push_back(event.peer);
      bytes.push_back(event.bytes);
    }
    ranks.push_back({{"rank", rank.info.rank},
                     {"host", rank.info.host},
                     {"dropped", rank.dropped_events},
                     {"clock_error", rank.info.first.error},
                     {"begin", begin},
                     {"length", length},
                     {"name", name},
                     {"category", category},
                     {"lane", lane},
                     {"step", step},
                     {"index", index},
                     {"stage", stage},
                     {"peer", peer},
                     {"bytes", bytes}});
  }
  return {{"names", names}, {"ranks", ranks}};
}

json task_row(const schedule::Task& task, double begin, double end) {
  return {name_of(task.kind), rounded(begin), rounded(end), task.micro_batch, task.stage};
}

// A step of usual length, as it was, and the same tasks without waiting for slow ranks, links or
// data: what the schedule itself takes.
json schedule_of(const RunReport& run) {
  if (run.steps.empty()) return nullptr;
  std::vector<const RecordedStep*> order;
  for (const RecordedStep& step : run.steps) order.push_back(&step);
  std::ranges::nth_element(order, order.begin() + static_cast<ptrdiff_t>(order.size() / 2), {},
                           &RecordedStep::seconds);
  const RecordedStep& step = *order[order.size() / 2];
  json measured = json::array(), expected = json::array();
  for (const auto& rank : step.ranks) {
    json rows = json::array();
    for (const RecordedTask& task : rank.tasks)
      rows.push_back(task_row(task.task, task.begin - step.begin(), task.end - step.begin()));
    measured.push_back(rows);
  }
  ReplayTimes times = times_of(step);
  all_begin_together(times);
  without_communication(times);
  without_loading(times);
  equal_ranks(step, times);
  const auto evaluation = replay(step, times, schedule::Record::all);
  for (const auto& events : evaluation.events) {
    json rows = json::array();
    for (const schedule::Event& event : events)
      if (event.end > event.begin) rows.push_back(task_row(event.task, event.begin, event.end));
    expected.push_back(rows);
  }
  return {{"step", step.step},
          {"seconds", rounded(step.seconds())},
          {"expected_seconds", rounded(evaluation.seconds)},
          {"measured", measured},
          {"expected", expected}};
}

json links_of(const RunReport& run) {
  const size_t ranks = run.ranks.size();
  std::vector<std::vector<double>> bytes(ranks, std::vector<double>(ranks));
  for (const RecordedStep& step : run.steps)
    for (size_t r = 0; r < ranks; ++r)
      for (const RecordedTask& task : step.ranks[r].tasks)
        if (task.task.kind == schedule::TaskKind::send && task.peer >= 0)
          bytes[r][static_cast<size_t>(task.peer)] +=
              static_cast<double>(task.bytes) / static_cast<double>(run.steps.size());
  return bytes;
}

// What names a plan's stage to people.
json plan_of(const RunReport& run) {
  if (!run.plan.is_object()) return nullptr;
  json plan = run.plan;
  if (plan.contains("stage_list"))
    for (json& stage : plan["stage_list"])
      if (stage.contains("ops") && stage["ops"].is_array()) {
        const json ops = stage["ops"];
        stage["op_count"] = ops.size();
        stage["first_op"] = ops.empty() ? json() : ops.front();
        stage["last_op"] = ops.empty() ? json() : ops.back();
        stage.erase("ops");
      }
  return plan;
}

}  // namespace

json tables_of(const RunReport& run) {
  json what_ifs = json::array(), parts = json::array(), ranks = json::array(),
       operations = json::array();
  for (const WhatIf& one : run.what_ifs.list)
    what_ifs.push_back({{"cause", one.cause},
                        {"advice", one.advice},
                        {"step_seconds", rounded(one.step_seconds)},
                        {"replay_error", rounded(one.replay_error)}});
  for (const RunPart& part : run.parts)
    parts.push_back({{"name", part.name}, {"seconds", rounded(part.seconds)}});
  for (const OperationTime& one : run.operations)
    operations.push_back(
        {{"name", one.name}, {"seconds", rounded(one.seconds)}, {"calls", rounded(one.calls)}});
  for (size_t r = 0; r < run.attribution.ranks.size(); ++r)
    ranks.push_back({{"rank", run.ranks[r].info.rank},
                     {"host", run.ranks[r].info.host},
                     {"step_seconds", rounded(run.attribution.ranks[r].seconds)},
                     {"time", categories_of(run.attribution.ranks[r])},
                     {"hidden_communication", rounded(run.attribution.hidden_communication[r])},
                     {"waited_for", run.attribution.waited_for[r]}});
  std::set<std::string> hosts;
  for (const auto& rank : run.ranks) hosts.insert(rank.info.host);
  return {{"run_dir", run.directory.string()},
          {"name", run.name()},
          {"model", run.model()},
          {"status", name_of_status(run.status)},
          {"ended", run.ended},
          {"ranks", run.ranks.size()},
          {"hosts", hosts},
          {"samples_per_second", rounded(run.samples_per_second())},
          {"step_seconds", rounded(run.attribution.all.seconds)},
          {"time", categories_of(run.attribution.all)},
          {"time_of_ranks", ranks},
          {"wall_seconds", rounded(run.wall_seconds)},
          {"parts", parts},
          {"operations", operations},
          {"verdict",
           {{"cause", run.verdict.cause},
            {"rank", run.verdict.rank},
            {"sentence", run.verdict.sentence},
            {"evidence", run.verdict.evidence},
            {"advice", run.verdict.advice},
            {"gain_seconds", rounded(run.verdict.gain_seconds)}}},
          {"replay",
           {{"measured_seconds", rounded(run.what_ifs.measured_seconds)},
            {"replayed_seconds", rounded(run.what_ifs.replay_seconds)},
            {"error", rounded(run.what_ifs.replay_error())}}},
          {"what_if", what_ifs}};
}

json page_data(std::span<const RunReport> runs) {
  json list = json::array(), categories = json::array();
  for (int c = 0; c < timeline::kCategories; ++c)
    categories.push_back(name_of(static_cast<Category>(c)));
  for (const RunReport& run : runs) {
    json one = tables_of(run);
    one["summary"] = run.summary;
    one["plan"] = plan_of(run);
    one["failure"] = run.failure;
    one["steps"] = steps_of(run);
    one["curves"] = curves_of(run);
    one["slices"] = slices_of(run);
    one["schedule"] = schedule_of(run);
    one["links"] = links_of(run);
    one["began"] = run.ranks.empty() ? json() : json(run.ranks[0].info.wall_seconds);
    list.push_back(std::move(one));
  }
  return {{"version", kVersion}, {"categories", categories}, {"runs", list}};
}

}  // namespace renkei::report
