#include "tests/plan/baselines.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace renkei::test {
namespace {

using plan::Layout;
using plan::Objective;
using plan::ScheduleKind;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Cuts along a topological order, about `most` of them.
std::vector<size_t> chain_of_cuts(const Objective& objective, size_t most) {
  const graph::Cuts& cuts = objective.cuts();
  std::vector<size_t> chain{0};
  for (size_t cut = 1; cut < cuts.size(); ++cut) {
    const auto ops = cuts.ops_between(0, cut);
    if (cuts.linear() || ops.back() == static_cast<graph::OpIndex>(ops.size()) - 1)
      chain.push_back(cut);
  }
  if (chain.size() <= most) return chain;
  std::vector<size_t> fewer;
  for (size_t i = 0; i < most; ++i) fewer.push_back(chain[i * (chain.size() - 1) / (most - 1)]);
  return fewer;
}

double seconds_between(const Objective& objective, size_t from, size_t to, double samples,
                       bool forward, bool backward) {
  const graph::Seconds seconds = objective.cuts().seconds(0, from, to);
  return (forward ? seconds.forward.at(samples) : 0) +
         (backward ? seconds.backward_input.at(samples) + seconds.backward_weight.at(samples) : 0);
}

Layout layout_of(ScheduleKind kind, int m, std::vector<size_t> cuts, std::vector<int> replicas) {
  const bool one = replicas.size() == 1;
  return {.schedule = one ? ScheduleKind::accumulate : kind,
          .micro_batches = m,
          .cuts = std::move(cuts),
          .replicas = std::move(replicas)};
}

Baseline equal_shares(const Objective& objective, const std::vector<int>& micro_batches,
                      std::string name, const std::function<double(size_t)>& weight_before) {
  const auto chain = chain_of_cuts(objective, 100'000);
  const size_t devices = std::min(objective.problem().devices.size(), chain.size() - 1);
  const double total = weight_before(chain.back());
  std::vector<size_t> cuts{0};
  size_t place = 0;
  for (size_t stage = 1; stage < devices; ++stage) {
    const double wanted = total * static_cast<double>(stage) / static_cast<double>(devices);
    ++place;
    while (place + 1 < chain.size() - (devices - stage) &&
           std::abs(weight_before(chain[place + 1]) - wanted) <
               std::abs(weight_before(chain[place]) - wanted))
      ++place;
    cuts.push_back(chain[place]);
  }
  cuts.push_back(chain.back());
  Baseline baseline{std::move(name), {}};
  for (const int m : micro_batches)
    baseline.layouts.push_back(
        layout_of(ScheduleKind::one_f_one_b, m, cuts, std::vector<int>(devices, 1)));
  return baseline;
}

}  // namespace

Baseline equal_parameters(const Objective& objective, const std::vector<int>& micro_batches) {
  return equal_shares(objective, micro_batches, "equal parameters", [&](size_t cut) {
    return cut == 0 ? 0 : objective.cuts().bytes(0, cut).trainable;
  });
}

Baseline equal_times(const Objective& objective, const std::vector<int>& micro_batches) {
  return equal_shares(objective, micro_batches, "equal times", [&](size_t cut) {
    return seconds_between(objective, 0, cut, 1, true, true);
  });
}

// A(j, d) = min over i, r of max(A(i, d - r), 2 transfer(i), T(i, j, r)): the slowest part of a
// pipeline over the first j cuts and d devices, T(i, j, r) = max(compute, 4 (r-1)/r weights / B) /
// r.
Baseline pipedream(const Objective& objective, const std::vector<int>& micro_batches) {
  const auto chain = chain_of_cuts(objective, 100);
  const plan::Problem& problem = objective.problem();
  const size_t devices = problem.devices.size();
  const double bandwidth =
      link_between(problem.machine, problem.devices.front(), problem.devices.back())
          .bytes_per_second;
  struct Cell {
    double slowest = kInfinite;
    size_t from = 0, replicas = 0;
  };
  Baseline baseline{"PipeDream", {}};
  for (const int m : micro_batches) {
    const double samples = static_cast<double>(problem.batch) / m;
    std::vector<std::vector<Cell>> table(chain.size(), std::vector<Cell>(devices + 1));
    table[0].assign(devices + 1, {.slowest = 0});
    for (size_t j = 1; j < chain.size(); ++j)
      for (size_t d = 1; d <= devices; ++d)
        for (size_t i = 0; i < j; ++i)
          for (size_t r = 1; r <= (i == 0 ? d : d - 1); ++r) {
            if (i == 0 && r != d) continue;
            const auto ranks = static_cast<double>(r);
            const double compute =
                seconds_between(objective, chain[i], chain[j], samples, true, true);
            const double weights = 4 * (ranks - 1) / ranks *
                                   objective.cuts().bytes(chain[i], chain[j]).trainable /
                                   bandwidth / m;
            const double transfer =
                2 * objective.cuts().crossing_bytes(chain[i]).at(samples) / bandwidth;
            const double slowest = std::max({table[i][d - r].slowest, i == 0 ? 0 : transfer,
                                             std::max(compute, weights) / ranks});
            if (slowest < table[j][d].slowest) table[j][d] = {slowest, i, r};
          }
    std::vector<size_t> cuts{chain.back()};
    std::vector<int> replicas;
    for (size_t j = chain.size() - 1, d = devices; j > 0;) {
      const Cell cell = table[j][d];
      replicas.insert(replicas.begin(), static_cast<int>(cell.replicas));
      cuts.insert(cuts.begin(), chain[cell.from]);
      j = cell.from;
      d -= cell.replicas;
    }
    baseline.layouts.push_back(layout_of(ScheduleKind::one_f_one_b, m, cuts, replicas));
  }
  return baseline;
}

Baseline rannc(const Objective& objective) {
  const auto chain = chain_of_cuts(objective, 33);
  const plan::Problem& problem = objective.problem();
  const size_t devices = problem.devices.size();
  struct Cell {
    double forward = 0, backward = 0;
    std::vector<size_t> cuts;
    std::vector<int> replicas;
    double value() const { return cuts.empty() ? kInfinite : forward + backward; }
  };
  Baseline baseline{"RaNNC", {}};
  for (size_t stages = 1; stages <= devices && baseline.layouts.empty(); ++stages)
    for (int m = 1; m <= 32; m *= 2) {
      if (problem.batch % m != 0) break;
      std::map<std::pair<size_t, size_t>, Cell> table{{{0, 0}, Cell{.cuts = {0}, .replicas = {}}}};
      for (size_t s = 1; s <= stages; ++s) {
        std::map<std::pair<size_t, size_t>, Cell> next;
        for (const auto& [key, cell] : table)
          for (size_t j = key.first + 1; j < chain.size(); ++j)
            for (size_t r = 1; key.second + r <= devices; r *= 2) {
              if (static_cast<int64_t>(r) > problem.batch / m) break;
              const double samples = objective.samples(m, static_cast<int>(r));
              const size_t from = chain[key.first], to = chain[j];
              Cell grown = cell;
              grown.forward = std::max(grown.forward,
                                       seconds_between(objective, from, to, samples, true, false));
              grown.backward = std::max(grown.backward,
                                        seconds_between(objective, from, to, samples, false, true));
              grown.cuts.push_back(to);
              grown.replicas.push_back(static_cast<int>(r));
              Cell& best = next[{j, key.second + r}];
              if (grown.value() < best.value()) best = std::move(grown);
            }
        table = std::move(next);
      }
      for (const auto& [key, cell] : table) {
        if (key.first != chain.size() - 1) continue;
        const Layout layout = layout_of(ScheduleKind::gpipe, m, cell.cuts, cell.replicas);
        if (objective.possible(layout) && objective.cost(layout).fits())
          baseline.layouts.push_back(layout);
      }
    }
  return baseline;
}

}  // namespace renkei::test
