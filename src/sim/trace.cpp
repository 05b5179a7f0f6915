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
  std::vector<std::string> of_ranks;
  for (size_t rank = 0; rank < std::min(ranks, evaluation.events.size()); ++rank) {
    std::vector<timeline::Event> events;
    for (const schedule::Event& event : evaluation.events[rank])
      events.push_back({.name = name_of(event.task.kind),
                        .category = category_of(event.task.kind),
                        .begin = event.begin,
                        .end = event.end,
                        .index = event.task.micro_batch});
    of_ranks.push_back(timeline::trace_events(events, static_cast<int>(rank), "predicted", 0));
  }
  return timeline::chrome_trace(of_ranks);
}

}  // namespace renkei::sim
