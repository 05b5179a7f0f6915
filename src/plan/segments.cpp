#include "plan/segments.h"

#include <algorithm>
#include <deque>

namespace renkei::plan {
namespace {

constexpr size_t kMostPoints = 96;  // cuts that are considered

struct Point {
  size_t cut;
  double saved;     // by all before it
  double crossing;  // bytes
};

// Cuts from `from` to `to`, each containing the one before; of too many, in equal slices of what is
// saved, the narrowest.
std::vector<Point> points_between(const graph::Cuts& cuts, size_t from, size_t to, double samples) {
  const double all = cuts.bytes(from, to).saved.at(samples);
  std::vector<Point> points{{from, 0, 0}};
  size_t last_slice = cuts.size();
  for (size_t cut = from + 1; cut < to; ++cut) {
    if (!cuts.contains(cut, points.back().cut) || !cuts.contains(to, cut)) continue;
    const double saved = cuts.saved_bytes(from, cut).at(samples);
    const Point point{cut, saved, cuts.crossing_bytes(cut).at(samples)};
    size_t slice = cut;
    if (to - from > kMostPoints && all > 0)
      slice = static_cast<size_t>(saved / all * static_cast<double>(kMostPoints - 1));
    if (slice != last_slice)
      points.push_back(point);
    else if (point.crossing <= points.back().crossing)
      points.back() = point;
    last_slice = slice;
  }
  points.push_back({to, all, 0});
  return points;
}

// The least that crosses when no segment saves more than `bound`; false where that can't be.
bool shortest_path(const std::vector<Point>& points, double bound, Segments& found) {
  std::vector<double> least(points.size());
  std::vector<size_t> before(points.size());
  std::deque<size_t> window{0};  // beginnings of a segment, by ascending `least`
  for (size_t i = 1; i < points.size(); ++i) {
    while (!window.empty() && points[i].saved - points[window.front()].saved > bound)
      window.pop_front();
    if (window.empty()) return false;
    before[i] = window.front();
    least[i] = least[before[i]] + points[i].crossing;
    while (!window.empty() && least[window.back()] >= least[i]) window.pop_back();
    window.push_back(i);
  }
  found = {.kept_bytes = least.back()};
  for (size_t i = points.size() - 1; i > 0; i = before[i]) {
    found.saved_bytes = std::max(found.saved_bytes, points[i].saved - points[before[i]].saved);
    if (before[i] > 0) found.cuts.push_back(points[before[i]].cut);
  }
  std::ranges::reverse(found.cuts);
  return true;
}

}  // namespace

Segments cheapest_segments(const graph::Cuts& cuts, size_t from, size_t to, double samples,
                           int whole) {
  const std::vector<Point> points = points_between(cuts, from, to, samples);
  Segments best{.saved_bytes = points.back().saved};
  Segments segments = best;
  // Less by a hair, whatever the rounding of sums.
  while (shortest_path(points, segments.saved_bytes * (1 - 1e-9), segments) &&
         whole * segments.kept_bytes < best.bytes(whole))
    if (segments.bytes(whole) < best.bytes(whole)) best = segments;
  return best;
}

Segments planned_segments(const graph::Cuts& cuts, size_t from, size_t to, double samples,
                          int whole) {
  if (from == 0 && to == cuts.last()) return cheapest_segments(cuts, from, to, samples, whole);
  return {.cuts = {}, .saved_bytes = cuts.bytes(from, to).saved.at(samples)};
}

}  // namespace renkei::plan
