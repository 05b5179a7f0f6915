#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace renkei::schedule {

// Goes through all lists, each in order, waiting where `ready(group, task)` says no; calls
// `visit(group, task)` for each task. Returns where each list stopped: at its end, unless tasks
// wait for each other.
template <typename Ready, typename Visit>
std::vector<size_t> walk(const Schedule& schedule, Ready&& ready, Visit&& visit) {
  std::vector<size_t> next(schedule.size());
  bool moved = true;
  const auto advance = [&](size_t group) {
    const TaskList& tasks = schedule[group];
    while (next[group] < tasks.size() && ready(group, tasks[next[group]])) {
      visit(group, tasks[next[group]++]);
      moved = true;
    }
  };
  // Down and up again, as activations and gradients flow.
  while (moved) {
    moved = false;
    for (size_t group = 0; group < schedule.size(); ++group) advance(group);
    for (size_t group = schedule.size(); group-- > 0;) advance(group);
  }
  return next;
}

}  // namespace renkei::schedule
