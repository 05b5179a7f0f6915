#include "plan/split_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace renkei::plan {

std::vector<size_t> chain_of_cuts(const Objective& objective) {
  const graph::Cuts& cuts = objective.cuts();
  const auto batch = static_cast<double>(objective.problem().graph.batch);
  const auto crossing = [&](size_t cut) { return cuts.crossing_bytes(cut).at(batch); };
  std::vector<size_t> chain{0};
  while (chain.back() != cuts.last()) {
    size_t best = 0;
    for (size_t cut = chain.back() + 1; cut < cuts.size(); ++cut) {
      if (!cuts.contains(cut, chain.back())) continue;
      if (best != 0 && cuts.ops_before(cut) > cuts.ops_before(best)) break;
      if (best == 0 || crossing(cut) < crossing(best)) best = cut;
    }
    chain.push_back(best);
  }
  return chain;
}

SplitTable::SplitTable(const Objective& objective, const SplitOptions& options,
                       const std::function<bool()>& expired)
    : objective_(objective), options_(options), expired_(expired) {
  choose_marks();
  add_rows();
}

// All cuts; or, when there are too many, of a chain of cuts the one in each slice of time that the
// fewest bytes cross.
void SplitTable::choose_marks() {
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
  const auto time = [&](size_t cut) { return cuts.seconds(0, 0, cut).total_at(batch); };
  const double total = std::max(time(cuts.last()), 1e-300);
  const auto slice = [&](size_t cut) {
    return std::floor(time(cut) / total * static_cast<double>(options_.most_cuts - 1));
  };
  linear_ = true;
  marks_.push_back(0);
  for (const size_t link : chain_of_cuts(objective_)) {
    if (link == 0 || link == cuts.last()) continue;
    if (marks_.back() == 0 || slice(link) != slice(marks_.back()))
      marks_.push_back(link);
    else if (crossing(link) < crossing(marks_.back()))
      marks_.back() = link;
  }
  marks_.push_back(cuts.last());
}

void SplitTable::add_rows() {
  const auto devices = static_cast<int>(objective_.problem().devices.size());
  for (int units = 1; units <= choices(); ++units) {
    const int replicas = units * options_.unit;
    std::vector<size_t>& row_of = row_of_.emplace_back();
    // The slowest devices come last: what fits them fits all.
    if (!options_.by_place) row_of.push_back(find_or_fill({devices - replicas, 1, replicas}));
    for (int place = 1; options_.by_place && place <= places(); ++place) {
      const int first = (places() - place) * options_.unit;
      row_of.push_back(place < units ? 0 : find_or_fill({first, 1, replicas}));
    }
  }
}

size_t SplitTable::find_or_fill(const DeviceRange& devices) {
  const GroupCosts& group = objective_.group(devices);
  for (size_t row = 0; row < rows_.size(); ++row)
    if (rows_[row].replicas == group.ranks && rows_[row].kinds == group.kinds) return row;
  rows_.push_back(fill(group));
  return rows_.size() - 1;
}

SplitTable::Row SplitTable::fill(const GroupCosts& group) const {
  const graph::Cuts& cuts = objective_.cuts();
  const Problem& problem = objective_.problem();
  const int64_t micro_batch = problem.batch / options_.micro_batches;
  const double samples = objective_.samples(options_.micro_batches, group.ranks);
  Row row{.replicas = group.ranks,
          .kinds = group.kinds,
          .limit = group.ranks <= micro_batch ? group.memory_bytes : -1,
          .entries = std::vector<Entry>(marks() * marks()),
          .transfers = {}};
  for (size_t from = 0; from + 1 < marks(); ++from) {
    const bool expired = expired_();
    for (size_t to = from + 1; to < marks(); ++to) {
      Entry& entry = row.entries[from * marks() + to];
      if (expired || !cuts.contains(marks_[to], marks_[from])) {
        entry.resident = std::numeric_limits<float>::infinity();
        continue;
      }
      for (const size_t kind : group.kinds) {
        const graph::Seconds seconds = cuts.seconds(kind, marks_[from], marks_[to]);
        entry.forward = std::max(entry.forward, static_cast<float>(seconds.forward.at(samples)));
        entry.compute = std::max(entry.compute, static_cast<float>(seconds.total_at(samples)));
      }
      const StageMemory empty =
          objective_.memory(group, marks_[from], marks_[to], samples, {}, false, true);
      entry.resident = static_cast<float>(empty.total());
      entry.saved = static_cast<float>(cuts.bytes(marks_[from], marks_[to]).saved.at(samples));
      entry.inputs = static_cast<float>(cuts.crossing_bytes(marks_[from]).at(samples));
      if (entry.resident + entry.inputs + entry.saved > row.limit) {
        const Segments segments = planned_segments(cuts, marks_[from], marks_[to], samples, 1);
        entry.kept = static_cast<float>(segments.kept_bytes);
        entry.segment = static_cast<float>(segments.saved_bytes);
      } else {
        entry.segment = entry.saved;
      }
    }
  }
  const comm::LinkCost link =
      link_between(problem.machine, problem.devices.front(), problem.devices.back());
  for (const size_t cut : marks_) {
    const double bytes =
        cuts.crossing_bytes(cut).at(samples) + cuts.crossing_gradient_bytes(cut).at(samples);
    row.transfers.push_back(2 * link.latency_seconds + bytes / link.bytes_per_second);
  }
  return row;
}

double SplitTable::weight(double forward, double compute) const {
  const double share = options_.forward_share;
  return share > 0 ? std::max(forward / share, (compute - forward) / (1 - share)) : compute;
}

SplitTable::Cost SplitTable::cost(size_t row, size_t from, size_t to, int k) const {
  const Entry& entry = rows_[row].entries[from * marks() + to];
  const int in_flight = std::min(k, options_.micro_batches);
  const double limit = rows_[row].limit, forward = entry.forward;
  double compute = entry.compute;
  if (entry.resident + in_flight * (entry.inputs + entry.saved) > limit) {
    if (entry.resident + in_flight * (entry.inputs + entry.kept) + entry.segment > limit)
      return {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    compute += forward;
  }
  return {compute, weight(forward, compute)};
}

double SplitTable::weight_before(size_t mark) const {
  const Entry& entry = rows_[row(1, places())].entries[mark];
  return weight(entry.forward, entry.compute);
}

}  // namespace renkei::plan
