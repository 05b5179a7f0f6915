#include "data/loader/read_runs.h"

#include <algorithm>
#include <tuple>

namespace renkei::data {

std::vector<ReadRun> plan_reads(std::span<const Location> locations, int64_t gap_bytes,
                                int64_t most_bytes) {
  std::vector<size_t> order;
  for (size_t i = 0; i < locations.size(); ++i)
    if (locations[i].file >= 0) order.push_back(i);
  std::ranges::sort(
      order, {}, [&](size_t i) { return std::tuple(locations[i].file, locations[i].offset, i); });
  std::vector<ReadRun> runs;
  for (const size_t i : order) {
    const Location& next = locations[i];
    if (!runs.empty() && runs.back().where.file == next.file) {
      Location& run = runs.back().where;
      const int64_t end = std::max(run.offset + run.length, next.offset + next.length);
      if (next.offset - (run.offset + run.length) <= gap_bytes && end - run.offset <= most_bytes) {
        run.length = end - run.offset;
        runs.back().members.push_back(i);
        continue;
      }
    }
    runs.push_back({next, {i}});
  }
  return runs;
}

}  // namespace renkei::data
