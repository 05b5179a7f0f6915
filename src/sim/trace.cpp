#include "sim/trace.h"

#include <algorithm>

#include "timeline/chrome_trace.h"

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

}  // namespace

std::string predicted_trace(const schedule::Evaluation& evaluation, size_t ranks) {
  std::vector<timeline::RankTimeline> of_ranks(std::min(ranks, evaluation.events.size()));
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    timeline::RankTimeline& timeline = of_ranks[rank];
    timeline.info = {.rank = static_cast<int>(rank),
                     .ranks = static_cast<int>(evaluation.events.size()),
                     .host = "predicted",
                     .predicted = true};
    timeline.finished = true;
    for (const schedule::Event& event : evaluation.events[rank])
      timeline.events.push_back({.name = name_of(event.task.kind),
                                 .category = category_of(event.task.kind),
                                 .begin = event.begin,
                                 .end = event.end,
                                 .step = 0,
                                 .index = event.task.micro_batch,
                                 .stage = event.task.stage});
  }
  std::string trace;
  timeline::write_chrome_trace(of_ranks, [&](std::string_view piece) { trace += piece; });
  return trace;
}

}  // namespace renkei::sim
