#include "comm/choice/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "comm/allreduce/torus.h"

namespace renkei::comm {
namespace {

constexpr Algorithm kAll[] = {Algorithm::automatic, Algorithm::ring,  Algorithm::halving_doubling,
                              Algorithm::tree,      Algorithm::torus, Algorithm::hierarchical};

// What a message costs even when its latency overlaps with another's, as a share of the latency.
constexpr double kOverhead = 0.25;

int levels(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));  // ceil(log2 n)
}

// Ranks with equal links between them; `sharing` of them use a link together.
struct Peers {
  LinkCost link;
  double reduce_bytes_per_second;
  int n;
  int sharing = 1;
  double transfer(double bytes) const { return bytes * sharing / link.bytes_per_second; }
  double reduction(double bytes) const { return bytes / reduce_bytes_per_second; }
};

double ring_seconds(const Peers& peers, double bytes, double segment_bytes) {
  if (peers.n == 1) return 0;
  const double steps = peers.n - 1, chunk = bytes / peers.n;
  const double segment = std::min(segment_bytes, chunk);
  const double more_messages = std::max(chunk / std::max(segment_bytes, 1.0) - 1, 0.0);
  const double latency = peers.link.latency_seconds * (1 + kOverhead * more_messages);
  const double send = peers.transfer(chunk), reduce = peers.reduction(chunk);
  const double first = std::min(peers.transfer(segment), peers.reduction(segment));
  return steps * (latency + std::max(send, reduce) + first) + steps * (latency + send);
}

// Only the steps that halve `bytes` down to bytes / n and back.
double halving_seconds(const Peers& peers, double bytes) {
  const int steps = static_cast<int>(std::bit_width(static_cast<unsigned>(peers.n))) - 1;
  const double moved = bytes * (1 - std::ldexp(1, -steps));
  return 2 * steps * peers.link.latency_seconds + 2 * peers.transfer(moved) +
         peers.reduction(moved);
}

double folding_seconds(const Peers& peers, double bytes) {
  if (std::has_single_bit(static_cast<unsigned>(peers.n))) return 0;
  return 2 * (peers.link.latency_seconds + peers.transfer(bytes)) + peers.reduction(bytes);
}

double tree_seconds(const Peers& peers, double bytes) {
  return levels(peers.n) *
         (2 * (peers.link.latency_seconds + peers.transfer(bytes)) + peers.reduction(bytes));
}

double flat_seconds(const Peers& peers, Algorithm algorithm, double bytes, double segment_bytes) {
  switch (algorithm) {
    case Algorithm::tree:
      return tree_seconds(peers, bytes);
    case Algorithm::halving_doubling:
      return halving_seconds(peers, bytes) + folding_seconds(peers, bytes);
    default:
      return ring_seconds(peers, bytes, segment_bytes);
  }
}

struct Layout {
  Peers inside, between;  // L ranks, H hosts
  bool one_host, one_rank_each;
};

Layout layout_of(const CostModel& model) {
  const int hosts = std::max(1, model.hosts);
  const int local = (model.ranks + hosts - 1) / hosts;
  return {{model.inside, model.reduce_bytes_per_second, local},
          {model.between, model.reduce_bytes_per_second, hosts},
          hosts == 1,
          local == 1};
}

double halving_doubling_seconds(const CostModel& model, const Layout& layout, double bytes) {
  // The first halvings go between hosts, with all ranks of a host at once, the rest inside.
  Peers between = layout.between;
  between.sharing = layout.inside.n;
  const double left =
      bytes / static_cast<double>(std::bit_floor(static_cast<unsigned>(layout.between.n)));
  Peers folding = layout.one_host ? layout.inside : layout.between;
  folding.n = model.ranks;
  return halving_seconds(between, bytes) + halving_seconds(layout.inside, left) +
         folding_seconds(folding, bytes);
}

double torus_seconds(const CostModel& model, const Layout& layout, double bytes,
                     double segment_bytes) {
  const int columns = square_columns(model.ranks);
  const bool rows_are_hosts = columns == layout.inside.n && model.even;
  Peers row = layout.one_host || rows_are_hosts ? layout.inside : layout.between;
  Peers column = layout.one_host ? layout.inside : layout.between;
  row.n = columns;
  column.n = model.ranks / columns;
  if (!layout.one_host) column.sharing = std::min(columns, layout.inside.n);
  return ring_seconds(row, bytes, segment_bytes) +
         ring_seconds(column, bytes / columns, segment_bytes);
}

double hierarchical_seconds(const CostModel& model, const Layout& layout, Algorithm outer,
                            double bytes, double segment_bytes) {
  if (layout.one_host || layout.one_rank_each) return std::numeric_limits<double>::infinity();
  if (!model.even)  // reduce to a leader and broadcast
    return tree_seconds(layout.inside, bytes) +
           flat_seconds(layout.between, outer, bytes, segment_bytes);
  Peers rails = layout.between;
  rails.sharing = layout.inside.n;
  return ring_seconds(layout.inside, bytes, segment_bytes) +
         flat_seconds(rails, outer, bytes / layout.inside.n, segment_bytes);
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::automatic:
      return "automatic";
    case Algorithm::ring:
      return "ring";
    case Algorithm::halving_doubling:
      return "halving_doubling";
    case Algorithm::tree:
      return "tree";
    case Algorithm::torus:
      return "torus";
    case Algorithm::hierarchical:
      return "hierarchical";
  }
  return "unknown algorithm";
}

Algorithm parse_algorithm(std::string_view text) {
  for (const Algorithm algorithm : kAll)
    if (text == name_of(algorithm)) return algorithm;
  std::string names;
  for (const Algorithm algorithm : kAll)
    names += (names.empty() ? "" : ", ") + std::string(name_of(algorithm));
  throw Error(ErrorCode::usage, fmt::format("there is no algorithm \"{}\"", text),
              "choose one of " + names);
}

double predicted_seconds(const CostModel& model, Algorithm algorithm, size_t bytes,
                         size_t segment_bytes, Algorithm outer) {
  if (model.ranks == 1) return 0;
  const Layout layout = layout_of(model);
  const auto b = static_cast<double>(bytes), segment = static_cast<double>(segment_bytes);
  switch (algorithm) {
    case Algorithm::automatic:
      return choose(model, bytes).predicted_seconds;
    case Algorithm::ring: {
      Peers all = layout.one_host ? layout.inside : layout.between;
      all.n = model.ranks;
      return ring_seconds(all, b, segment);
    }
    case Algorithm::halving_doubling:
      return halving_doubling_seconds(model, layout, b);
    case Algorithm::tree:
      return tree_seconds(layout.inside, b) + tree_seconds(layout.between, b);
    case Algorithm::torus:
      return torus_seconds(model, layout, b, segment);
    case Algorithm::hierarchical:
      return hierarchical_seconds(model, layout, outer, b, segment);
  }
  return 0;
}

size_t best_segment_bytes(const CostModel& model, Algorithm algorithm, size_t bytes) {
  const Layout layout = layout_of(model);
  const LinkCost& link = layout.one_host ? model.inside : model.between;
  double chunk = static_cast<double>(bytes) / model.ranks;
  if (algorithm == Algorithm::hierarchical && model.even)
    chunk = static_cast<double>(bytes) / std::max(layout.inside.n, layout.between.n);
  const double overhead = kOverhead * link.latency_seconds;
  const double rate = std::max(link.bytes_per_second, model.reduce_bytes_per_second);
  const double best = std::sqrt(chunk * overhead * rate);
  const auto bounded = static_cast<size_t>(std::clamp(best, 4096.0, 4.0 * 1024 * 1024));
  return std::bit_floor(bounded);
}

Choice choose(const CostModel& model, size_t bytes) {
  Choice choice;
  const auto add = [&](Algorithm algorithm, Algorithm outer) {
    const size_t segment_bytes = best_segment_bytes(model, algorithm, bytes);
    const double seconds = predicted_seconds(model, algorithm, bytes, segment_bytes, outer);
    if (std::isfinite(seconds))
      choice.candidates.push_back({algorithm, outer, segment_bytes, seconds});
  };
  for (const Algorithm flat : {Algorithm::tree, Algorithm::halving_doubling, Algorithm::ring})
    add(flat, Algorithm::ring);
  for (const Algorithm outer : {Algorithm::tree, Algorithm::halving_doubling, Algorithm::ring})
    add(Algorithm::hierarchical, outer);
  if (square_columns(model.ranks) < model.ranks) add(Algorithm::torus, Algorithm::ring);
  // Above, the ones with the fewest messages come first (and hierarchical before a torus, whose
  // rows may not be hosts); they win where times are as good as equal.
  constexpr double kEqual = 1.02;
  const auto faster = [](const Prediction& x, const Prediction& y) {
    return x.seconds < y.seconds;
  };
  const auto all_begin = choice.candidates.begin(), all_end = choice.candidates.end();
  const double least = std::min_element(all_begin, all_end, faster)->seconds;
  const auto winner = std::find_if(
      all_begin, all_end, [&](const Prediction& x) { return x.seconds <= kEqual * least; });
  std::rotate(all_begin, winner, winner + 1);
  std::stable_sort(all_begin + 1, all_end, faster);
  const Prediction& best = choice.candidates.front();
  choice.algorithm = best.algorithm;
  choice.outer = best.outer;
  choice.segment_bytes = best.segment_bytes;
  choice.predicted_seconds = best.seconds;
  return choice;
}

}  // namespace renkei::comm
