#include "plan/splits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "plan/at.h"
#include "plan/split_table.h"

namespace renkei::plan {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Bounds on the slowest stage grow by this factor.
constexpr double kBoundStep = 1.04;
// With a bound of c, only numbers of stages up to this often total / c are of interest: more stages
// would be found with a smaller bound.
constexpr double kSlack = 3;

// L(k, i, d) for one bound, and how it came about. With uniform devices, d follows from k.
class Recurrence {
 public:
  Recurrence(const SplitTable& table, const SplitOptions& options, double bound, int most_stages)
      : table_(table),
        options_(options),
        bound_(bound),
        parts_(options.uniform ? most_stages : options.units) {
    const auto size = (static_cast<size_t>(most_stages) + 1) * table.marks() * widths();
    latency_.assign(size, kInfinite);
    next_.resize(size);
    latency_[place(0, table.marks() - 1, 0)] = 0;
    first_reached_ = table.marks() - 1;
    for (int k = 1; k <= most_stages; ++k) fill(k);
  }

  // With exactly k stages, over the whole model; the devices that give the least.
  std::optional<Split> split(int k) const {
    size_t d = 0;
    for (size_t more = 1; more < widths(); ++more)
      if (latency_[place(k, 0, more)] < latency_[place(k, 0, d)]) d = more;
    if (latency_[place(k, 0, d)] == kInfinite) return std::nullopt;
    Split split{.cuts = {0}};
    for (size_t mark = 0; k > 0; --k) {
      const Step step = next_[place(k, mark, d)];
      mark = step.mark;
      if (!options_.uniform) d -= step.units;
      split.cuts.push_back(table_.cut(mark));
      split.replicas.push_back(static_cast<int>(step.units) * options_.unit);
    }
    return split;
  }

 private:
  struct Step {
    uint16_t mark = 0, units = 0;
  };

  size_t widths() const { return options_.uniform ? 1 : static_cast<size_t>(options_.units) + 1; }
  size_t place(int k, size_t mark, size_t d) const {
    return (static_cast<size_t>(k) * table_.marks() + mark) * widths() + d;
  }

  void fill(int k) {
    size_t first_reached = table_.marks() - 1;
    for (size_t from = 0; from + 1 < table_.marks(); ++from) {
      // What comes before must still fit into the stages, or units of devices, that are left.
      if (table_.weight_before(from) > bound_ * (parts_ - k)) break;
      for (int units = 1; units <= table_.choices(); ++units) {
        // Places whose devices are alike are done together.
        int place = options_.uniform ? k : units;
        const int last = options_.uniform ? k : options_.units;
        while (place <= last) {
          int end = place + 1;
          const size_t row = table_.row(units, place);
          while (end <= last && table_.row(units, end) == row) ++end;
          if (fill(k, from, units, row, place, end)) first_reached = std::min(first_reached, from);
          place = end;
        }
      }
    }
    first_reached_ = first_reached;
  }

  // Stages that begin at a mark, on units of the places from `first` to before `end`.
  bool fill(int k, size_t from, int units, size_t row, int first, int end) {
    bool reached = false;
    for (size_t to = std::max(from + 1, first_reached_); to < table_.marks(); ++to) {
      const SplitTable::Cost cost = table_.cost(row, from, to, k);
      if (cost.weight > bound_) {
        if (table_.linear()) break;  // a longer stage takes even longer
        continue;
      }
      if (cost.seconds == kInfinite) continue;
      reached = true;
      const double seconds =
          cost.seconds + (to + 1 < table_.marks() ? table_.transfer(row, to) : 0);
      if (options_.uniform)
        extend(place(k, from, 0), place(k - 1, to, 0), to, units, seconds);
      else
        for (int d = first; d < end; ++d)
          extend(place(k, from, at(d)), place(k - 1, to, at(d - units)), to, units, seconds);
    }
    return reached;
  }

  void extend(size_t place, size_t rest, size_t to, int units, double seconds) {
    const double latency = latency_[rest] + seconds;
    if (latency >= latency_[place]) return;
    latency_[place] = latency;
    next_[place] = {static_cast<uint16_t>(to), static_cast<uint16_t>(units)};
  }

  const SplitTable& table_;
  const SplitOptions& options_;
  double bound_;
  int parts_;
  size_t first_reached_;  // by the stages so far: no mark before it has a finite latency
  std::vector<double> latency_;
  std::vector<Step> next_;
};

}  // namespace

std::vector<Split> propose_splits(const Objective& objective, const SplitOptions& options,
                                  const std::function<bool()>& expired) {
  const SplitTable table(objective, options, expired);
  const double total = table.total_weight();
  std::set<Split> found;
  const auto solve = [&](double bound, int most_stages) {
    if (expired()) return;
    const Recurrence recurrence(table, options, bound, most_stages);
    const bool only_most = options.uniform && options.by_place;
    for (int k = only_most ? options.most_stages : 1; k <= most_stages; ++k)
      if (auto split = recurrence.split(k)) found.insert(*std::move(split));
  };
  // The bounds do not depend on the number of stages, so that who allows more finds what who allows
  // few does.
  const int parts = options.uniform ? options.most_stages : options.units;
  const bool any = options.uniform || options.by_place;
  for (double bound = total * 1.01; bound >= total / parts && !expired(); bound /= kBoundStep) {
    if (bound <= 0) break;  // a graph may cost nothing
    if (!any && bound > kSlack * total / parts) continue;
    const double most = std::clamp(kSlack * total / bound, 1.0, 1.0 * options.most_stages);
    solve(bound, options.by_place ? options.most_stages : static_cast<int>(most));
  }
  solve(std::numeric_limits<double>::max(), std::min(options.most_stages, 8));
  return {found.begin(), found.end()};
}

Split equal_times(const Objective& objective, std::vector<int> replicas, double samples) {
  const graph::Cuts& cuts = objective.cuts();
  const std::vector<size_t> chain = chain_of_cuts(objective);
  const auto seconds_before = [&](size_t kind, size_t cut) {
    return cuts.seconds(kind, 0, cut).total_at(samples);
  };
  std::vector<double> speed_before{0};  // of the groups before each
  for (int first = 0; const int count : replicas) {
    double slowest = 1e-300;
    for (const size_t kind : objective.group({first, 1, count}).kinds)
      slowest = std::max(slowest, seconds_before(kind, cuts.last()));
    speed_before.push_back(speed_before.back() + count / slowest);
    first += count;
  }
  Split split{.cuts = {0}};
  const double total = seconds_before(0, cuts.last());
  size_t place = 0;
  for (size_t stage = 1; stage < replicas.size(); ++stage) {
    const double wanted = total * speed_before[stage] / speed_before.back();
    const auto miss = [&](size_t p) { return std::abs(seconds_before(0, chain[p]) - wanted); };
    ++place;
    while (place + 1 < chain.size() - (replicas.size() - stage) && miss(place + 1) < miss(place))
      ++place;
    split.cuts.push_back(chain[place]);
  }
  split.cuts.push_back(cuts.last());
  split.replicas = std::move(replicas);
  return split;
}

}  // namespace renkei::plan
