#include "sim/trace.h"

#include <algorithm>

#include "timeline/chrome_trace.h"
#include "timeline/rank_file.h"

namespace renkei::sim {
namespace {

using schedule::TaskKind;
using timeline::Category;

Category category_of(TaskKind kind) {
  if (is_compute(kind)) return Category::compute;
  switch (kind) {
    case TaskKind::load:
      return Category::data;
    case TaskKind::update:
      return Category::update;
    default:
      return Category::communication;
  }
}

void write_rank(const std::vector<schedule::Event>& events, double step_seconds, int64_t samples,
                timeline::RankFile& file) {
  timeline::StepRecord record{.samples = samples};
  record.times.seconds = step_seconds;
  double explained = 0;
  for (const schedule::Event& event : events) {
    const Category category = category_of(event.task.kind);
    file.add({.name = name_of(event.task.kind),
              .category = category,
              .begin = event.begin,
              .end = event.end,
              .step = 0,
              .index = event.task.micro_batch,
              .stage = event.task.stage});
    record.times[category] += event.end - event.begin;
    explained += event.end - event.begin;
  }
  record.times[Category::wait] += std::max(0.0, step_seconds - explained);
  file.add(record);
  file.finish();
}

}  // namespace

void write_predicted_timeline(const schedule::Evaluation& evaluation, int64_t samples,
                              const std::filesystem::path& run_directory, size_t ranks) {
  const std::filesystem::path directory = run_directory / "timeline";
  std::filesystem::create_directories(directory);
  const size_t written = std::min(ranks, evaluation.events.size());
  for (size_t rank = 0; rank < written; ++rank) {
    timeline::RankFile file({.directory = directory}, {.rank = static_cast<int>(rank),
                                                       .ranks = static_cast<int>(written),
                                                       .host = "predicted",
                                                       .predicted = true});
    write_rank(evaluation.events[rank], evaluation.seconds, samples, file);
  }
  timeline::write_chrome_trace(timeline::read_timeline(directory), run_directory / "timeline.json");
}

}  // namespace renkei::sim
