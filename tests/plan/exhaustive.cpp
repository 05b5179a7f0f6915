#include "tests/plan/exhaustive.h"

#include <functional>
#include <map>

namespace renkei::test {
namespace {

using plan::Evaluated;
using plan::Layout;
using plan::Objective;
using plan::Placement;
using plan::ScheduleKind;
using plan::SearchOptions;

using OpSet = std::vector<graph::OpIndex>;

// Calls `use` with the stage of each op, for each assignment that leaves no stage empty.
void for_each_assignment(const graph::Graph& graph, int stages,
                         const std::function<void(const std::vector<int>&)>& use) {
  const auto before = predecessors(graph);
  std::vector<int> stage_of(graph.ops.size());
  std::vector<int> ops_in(static_cast<size_t>(stages));
  const std::function<void(size_t)> assign = [&](size_t op) {
    if (op == graph.ops.size()) {
      for (const int ops : ops_in)
        if (ops == 0) return;
      return use(stage_of);
    }
    int first = 0;
    for (const graph::OpIndex earlier : before[op])
      first = std::max(first, stage_of[static_cast<size_t>(earlier)]);
    for (int stage = first; stage < stages; ++stage) {
      stage_of[op] = stage;
      ++ops_in[static_cast<size_t>(stage)];
      assign(op + 1);
      --ops_in[static_cast<size_t>(stage)];
    }
  };
  assign(0);
}

void for_each_composition(int parts, int most,
                          const std::function<void(const std::vector<int>&)>& use) {
  std::vector<int> numbers;
  const std::function<void(int)> add = [&](int left) {
    if (static_cast<int>(numbers.size()) == parts) return use(numbers);
    for (int number = 1; number <= left; ++number) {
      numbers.push_back(number);
      add(left - number);
      numbers.pop_back();
    }
  };
  add(most);
}

}  // namespace

std::optional<Evaluated> best_of_all(const Objective& objective, const SearchOptions& options) {
  const graph::Graph& graph = objective.problem().graph;
  const int devices = static_cast<int>(objective.problem().devices.size());
  std::map<OpSet, size_t> cut_of;
  for (size_t cut = 0; cut < objective.cuts().size(); ++cut)
    cut_of[objective.cuts().ops_between(0, cut)] = cut;

  std::optional<Evaluated> best;
  const auto try_all = [&](const std::vector<size_t>& cuts, int groups, int chunks) {
    for_each_composition(groups, devices, [&](const std::vector<int>& replicas) {
      for (const ScheduleKind kind : options.schedules)
        for (const int m : options.micro_batches)
          for (const bool sharded : options.sharded)
            for (const Placement placement : {Placement::together, Placement::apart}) {
              const Layout layout{kind, m, chunks, sharded, placement, cuts, replicas};
              if (!objective.possible(layout)) continue;
              const Evaluated evaluated = objective.evaluate(layout);
              if (evaluated.fits() && (!best || evaluated.seconds < best->seconds))
                best = evaluated;
            }
    });
  };
  std::vector<int> chunk_choices{1};
  for (const ScheduleKind kind : options.schedules)
    if (kind == ScheduleKind::interleaved)
      chunk_choices.insert(chunk_choices.end(), options.chunks.begin(), options.chunks.end());
  for (const int chunks : chunk_choices)
    for (int groups = 1; groups <= devices; ++groups) {
      const int stages = groups * chunks;
      if (stages > static_cast<int>(graph.ops.size())) break;
      for_each_assignment(graph, stages, [&](const std::vector<int>& stage_of) {
        std::vector<size_t> cuts{0};
        for (int stage = 0; stage < stages; ++stage) {
          OpSet ops;
          for (size_t op = 0; op < stage_of.size(); ++op)
            if (stage_of[op] <= stage) ops.push_back(static_cast<graph::OpIndex>(op));
          cuts.push_back(cut_of.at(ops));
        }
        try_all(cuts, groups, chunks);
      });
    }
  return best;
}

}  // namespace renkei::test
