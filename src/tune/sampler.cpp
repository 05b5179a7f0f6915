#include "tune/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "tune/parzen.h"

namespace renkei::tune {
namespace {

constexpr int kDraws = 10'000;  // until a constraint that holds so rarely is given up
constexpr size_t kMostGood = 25;

// The parameters that are decided together, in an order in which conditions are known.
std::vector<std::vector<const Parameter*>> groups_of(const Space& space) {
  std::vector<std::vector<const Parameter*>> groups(1);
  for (const Parameter& parameter : space.parameters)
    if (parameter.when.empty()) groups[0].push_back(&parameter);
  for (const Parameter& parameter : space.parameters)
    if (!parameter.when.empty()) groups.push_back({&parameter});
  if (groups[0].empty()) groups.erase(groups.begin());
  return groups;
}

struct Split {
  std::vector<Point> good, rest;
};

// The trials that have the parameters of a group: the best, and all others, each in the order of
// time. Pending and failed ones are never among the best.
Split split(const std::vector<Trial>& trials, const std::vector<const Parameter*>& group) {
  std::vector<const Trial*> known;
  for (const Trial& trial : trials)
    if (trial.point.contains(group[0]->name)) known.push_back(&trial);
  std::ranges::stable_sort(known, {}, [](const Trial* trial) {
    return trial->loss.value_or(std::numeric_limits<double>::infinity());
  });
  const auto done = static_cast<size_t>(
      std::ranges::count_if(known, [](const Trial* trial) { return trial->loss.has_value(); }));
  const size_t good = std::min(
      {static_cast<size_t>(std::ceil(0.1 * static_cast<double>(known.size()))), kMostGood, done});
  const auto border = known.begin() + static_cast<std::ptrdiff_t>(good);
  std::ranges::sort(known.begin(), border, {}, &Trial::number);
  std::ranges::sort(border, known.end(), {}, &Trial::number);
  Split result;
  for (size_t i = 0; i < known.size(); ++i)
    (i < good ? result.good : result.rest).push_back(known[i]->point);
  return result;
}

[[noreturn]] void refuse_constraints() {
  throw Error(ErrorCode::usage, "no setting was found that satisfies the constraints",
              "give the parameters of a product ranges that contain its divisors");
}

template <typename Draw>
Point first_that_satisfies(const Space& space, const Point& so_far, bool check, Draw draw) {
  for (int i = 0; i < kDraws; ++i) {
    Point point = so_far;
    point.merge(draw());
    if (!check || satisfies(space, point)) return point;
  }
  refuse_constraints();
}

bool applies(const std::vector<const Parameter*>& group, const Space& space, const Point& point) {
  return active(*group[0], space, point);
}

Point best_candidate(const Space& space, const Point& so_far,
                     const std::vector<const Parameter*>& group, const Split& trials, bool check,
                     Random& random, int candidates) {
  const ParzenEstimator good(group, trials.good), rest(group, trials.rest);
  Point best;
  double best_score = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < candidates; ++i) {
    Point point = first_that_satisfies(space, so_far, check, [&] { return good.sample(random); });
    const double score = good.log_density(point) - rest.log_density(point);
    if (best.empty() || score > best_score) {
      best_score = score;
      best = std::move(point);
    }
  }
  return best;
}

}  // namespace

Point random_point(const Space& space, int64_t number, uint64_t seed) {
  Random random(seed, static_cast<uint64_t>(number));
  Point point;
  bool first = true;
  for (const auto& group : groups_of(space)) {
    if (!applies(group, space, point)) continue;
    point = first_that_satisfies(space, point, first, [&] {
      Point drawn;
      for (const Parameter* p : group) {
        if (p->kind == Kind::choice) {
          drawn[p->name] = static_cast<double>(random.below(p->choices.size()));
          continue;
        }
        const double half = p->kind == Kind::integer ? 0.5 : 0;
        double low = p->low - half, high = p->high + half;
        if (p->logarithmic) low = std::log(low), high = std::log(high);
        double value = low + (high - low) * random.uniform();
        if (p->logarithmic) value = std::exp(value);
        if (p->kind == Kind::integer) value = std::round(value);
        drawn[p->name] = std::clamp(value, p->low, p->high);
      }
      return drawn;
    });
    first = false;
  }
  return point;
}

Point suggest(const Space& space, const std::vector<Trial>& trials, int64_t number,
              const SamplerOptions& options) {
  const auto done = std::ranges::count_if(trials, [](const Trial& t) { return !t.pending; });
  if (done < options.startup) return random_point(space, number, options.seed);
  Random random(options.seed, static_cast<uint64_t>(number));
  Point point;
  bool first = true;
  for (const auto& group : groups_of(space)) {
    if (!applies(group, space, point)) continue;
    point = best_candidate(space, point, group, split(trials, group), first, random,
                           options.candidates);
    first = false;
  }
  return point;
}

}  // namespace renkei::tune
