#include "plan/splits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

namespace renkei::plan {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Bounds on the slowest stage grow by this factor.
constexpr double kBoundStep = 1.04;
// With a bound of c, only numbers of stages up to this often total / c are of interest: more stages
// would be found with a smaller bound.
constexpr double kSlack = 3;

// A stage between two marks on some devices, without what depends on its place in the pipeline.
struct Entry {
  float compute = 0, forward = 0;             // seconds
  float resident = 0, saved = 0, inputs = 0;  // bytes
};

class Table {
 public:
  Table(const Objective& objective, const SplitOptions& options)
      : objective_(objective), options_(options) {
    choose_marks();
    const int choices = options.uniform ? 1 : options.units;
    for (int u = 1; u <= choices; ++u) fill(u * options.unit);
  }

  size_t marks() const { return marks_.size(); }
  size_t cut(size_t mark) const { return marks_[mark]; }
  int choices() const { return static_cast<int>(entries_.size()); }
  double total_seconds() const { return total_seconds_; }
  bool linear() const { return linear_; }  // each mark contains all before it

  // Seconds of a stage that is the k-th from the end, infinite when it does not fit.
  double seconds(size_t from, size_t to, int units, int k) const {
    const Entry& entry = entries_[static_cast<size_t>(units - 1)][from * marks_.size() + to];
    const int in_flight = std::min(k, options_.micro_batches);
    const double limit = limits_[static_cast<size_t>(units - 1)];
    if (entry.resident + in_flight * (entry.inputs + entry.saved) <= limit) return entry.compute;
    if (entry.resident + in_flight * entry.inputs + entry.saved <= limit)
      return entry.compute + entry.forward;
    return kInfinite;
  }
  double seconds_before(size_t mark) const {  // on one unit
    return static_cast<double>(entries_.front()[mark].compute);
  }
  double transfer(size_t mark, int units) const {
    return transfers_[static_cast<size_t>(units - 1)][mark];
  }

 private:
  // All cuts; or, when there are too many, of a chain of cuts the one in each slice of time that
  // the fewest bytes cross.
  void choose_marks() {
    const graph::Cuts& cuts = objective_.cuts();
    // Where cuts are not in a line, every pair has to be looked at.
    constexpr size_t kMostUnordered = 64;
    if (cuts.size() <= (cuts.linear() ? options_.most_cuts : kMostUnordered)) {
      for (size_t cut = 0; cut < cuts.size(); ++cut) marks_.push_back(cut);
      linear_ = cuts.linear();
      return;
    }
    const auto batch = static_cast<double>(objective_.problem().graph.batch);
    const auto crossing = [&](size_t cut) { return cuts.crossing_bytes(cut).at(batch); };
    const auto time = [&](size_t cut) {
      const graph::Seconds seconds = cuts.seconds(0, 0, cut);
      return seconds.forward.at(batch) + seconds.backward_input.at(batch) +
             seconds.backward_weight.at(batch);
    };
    const double total = std::max(time(cuts.last()), 1e-300);
    const auto slice = [&](size_t cut) {
      return std::floor(time(cut) / total * static_cast<double>(options_.most_cuts - 1));
    };
    linear_ = true;
    marks_.push_back(0);
    for (size_t link = next_link(0, crossing); link != cuts.last();
         link = next_link(link, crossing)) {
      if (marks_.back() == 0 || slice(link) != slice(marks_.back()))
        marks_.push_back(link);
      else if (crossing(link) < crossing(marks_.back()))
        marks_.back() = link;
    }
    marks_.push_back(cuts.last());
  }

  // Of the cuts with one op more (or the next, where some are missing), the narrowest.
  template <typename Crossing>
  size_t next_link(size_t from, const Crossing& crossing) const {
    const graph::Cuts& cuts = objective_.cuts();
    size_t best = 0;
    for (size_t cut = from + 1; cut < cuts.size(); ++cut) {
      if (!cuts.contains(cut, from)) continue;
      if (best != 0 && cuts.ops_before(cut) > cuts.ops_before(best)) break;
      if (best == 0 || crossing(cut) < crossing(best)) best = cut;
    }
    return best;
  }

  void fill(int replicas) {
    const graph::Cuts& cuts = objective_.cuts();
    const int devices = static_cast<int>(objective_.problem().devices.size());
    // The slowest devices come last: what fits them fits all.
    const GroupCosts& group = objective_.group({devices - replicas, 1, replicas});
    const int64_t micro_batch = objective_.problem().batch / options_.micro_batches;
    const double samples = objective_.samples(options_.micro_batches, replicas);
    limits_.push_back(replicas <= micro_batch ? group.memory_bytes : -1);
    std::vector<Entry>& table = entries_.emplace_back(marks_.size() * marks_.size());
    for (size_t from = 0; from + 1 < marks_.size(); ++from)
      for (size_t to = from + 1; to < marks_.size(); ++to) {
        Entry& entry = table[from * marks_.size() + to];
        if (!cuts.contains(marks_[to], marks_[from])) {
          entry.resident = std::numeric_limits<float>::infinity();
          continue;
        }
        for (const size_t kind : group.kinds) {
          const graph::Seconds seconds = cuts.seconds(kind, marks_[from], marks_[to]);
          const double forward = seconds.forward.at(samples);
          entry.forward = std::max(entry.forward, static_cast<float>(forward));
          entry.compute = std::max(entry.compute,
                                   static_cast<float>(forward + seconds.backward_input.at(samples) +
                                                      seconds.backward_weight.at(samples)));
        }
        const StageMemory empty =
            objective_.memory(group, marks_[from], marks_[to], samples, {}, false, true);
        entry.resident = static_cast<float>(empty.total());
        entry.saved = static_cast<float>(cuts.bytes(marks_[from], marks_[to]).saved.at(samples));
        entry.inputs = static_cast<float>(cuts.crossing_bytes(marks_[from]).at(samples));
      }
    std::vector<double>& transfers = transfers_.emplace_back();
    const comm::LinkCost link =
        link_between(objective_.problem().machine, objective_.problem().devices.front(),
                     objective_.problem().devices.back());
    for (const size_t cut : marks_) {
      const double bytes =
          cuts.crossing_bytes(cut).at(samples) + cuts.crossing_gradient_bytes(cut).at(samples);
      transfers.push_back(2 * link.latency_seconds + bytes / link.bytes_per_second);
    }
    total_seconds_ = static_cast<double>(entries_.front()[marks_.size() - 1].compute);
  }

  const Objective& objective_;
  const SplitOptions& options_;
  std::vector<size_t> marks_;
  std::vector<std::vector<Entry>> entries_;  // by units - 1, then from × to
  std::vector<double> limits_;               // of memory, by units - 1
  std::vector<std::vector<double>> transfers_;
  double total_seconds_ = 0;  // of everything on one unit
  bool linear_ = false;
};

// L(k, i, d) for one bound, and how it came about. With uniform devices, d follows from k.
class Recurrence {
 public:
  Recurrence(const Table& table, const SplitOptions& options, double bound, int most_stages)
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
      if (table_.seconds_before(from) > bound_ * (parts_ - k)) break;
      for (int units = 1; units <= table_.choices(); ++units)
        for (size_t to = std::max(from + 1, first_reached_); to < table_.marks(); ++to) {
          const double seconds = table_.seconds(from, to, units, k);
          if (seconds > bound_) {
            if (table_.linear()) break;  // a longer stage takes even longer
            continue;
          }
          first_reached = std::min(first_reached, from);
          extend(k, from, to, units,
                 seconds + (to + 1 < table_.marks() ? table_.transfer(to, units) : 0));
        }
    }
    first_reached_ = first_reached;
  }

  void extend(int k, size_t from, size_t to, int units, double seconds) {
    const auto used = options_.uniform ? size_t{0} : static_cast<size_t>(units);
    for (size_t d = used; d < widths(); ++d) {
      const double latency = latency_[place(k - 1, to, d - used)] + seconds;
      double& best = latency_[place(k, from, d)];
      if (latency >= best) continue;
      best = latency;
      next_[place(k, from, d)] = {static_cast<uint16_t>(to), static_cast<uint16_t>(units)};
    }
  }

  const Table& table_;
  const SplitOptions& options_;
  double bound_;
  int parts_;
  size_t first_reached_;  // by the stages so far: no mark before it has a finite latency
  std::vector<double> latency_;
  std::vector<Step> next_;
};

}  // namespace

std::vector<Split> propose_splits(const Objective& objective, const SplitOptions& options) {
  const Table table(objective, options);
  const double total = table.total_seconds();
  std::set<Split> found;
  const auto solve = [&](double bound, int most_stages) {
    const Recurrence recurrence(table, options, bound, most_stages);
    for (int k = 1; k <= most_stages; ++k)
      if (auto split = recurrence.split(k)) found.insert(*std::move(split));
  };
  const int parts = options.uniform ? options.most_stages : options.units;
  const double largest = options.uniform ? total * 1.01 : kSlack * total / parts;
  double bound = total / parts;
  while (bound > 0 && bound <= largest) {  // a graph may cost nothing
    const double most = std::clamp(kSlack * total / bound, 1.0, 1.0 * options.most_stages);
    solve(bound, static_cast<int>(most));
    bound *= kBoundStep;
  }
  solve(std::numeric_limits<double>::max(), std::min(options.most_stages, 8));
  return {found.begin(), found.end()};
}

}  // namespace renkei::plan
