// Units of work are numbered in the order in which a group does them: unit u is a micro-batch of a
// round of n = groups micro-batches, on one of the v chunks.
//
//   forward   chunk (u / n) mod v,           micro-batch u / (n v) * n + u mod n
//   backward  chunk v - 1 - (u / n) mod v,   the same micro-batch
//
// Group g does 2 (n - g - 1) + (v - 1) n forwards before its first backward.
#include <algorithm>

#include "schedule/generators.h"

namespace renkei::schedule {

Schedule interleaved(const plan::Shape& shape) {
  const int n = shape.groups(), v = shape.chunks, units = shape.micro_batches * v;
  Schedule schedule(static_cast<size_t>(n));
  for (int group = 0; group < n; ++group) {
    TaskList& tasks = schedule[static_cast<size_t>(group)];
    const auto add = [&](TaskKind kind, int unit) {
      const int turn = unit / n % v;
      const int chunk = kind == TaskKind::forward ? turn : v - 1 - turn;
      tasks.push_back({kind, unit / (n * v) * n + unit % n, chunk * n + group});
    };
    const int warm_up = std::min(units, 2 * (n - group - 1) + (v - 1) * n);
    int forward = 0;
    while (forward < warm_up) add(TaskKind::forward, forward++);
    for (int unit = 0; unit < units; ++unit) {
      if (forward < units) add(TaskKind::forward, forward++);
      add(TaskKind::backward, unit);
    }
  }
  return schedule;
}

}  // namespace renkei::schedule
