#include "plan/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace renkei::plan {
namespace {

constexpr size_t kRejected = 8;       // alternatives that are told
constexpr double kFarFromBest = 1.5;  // this much slower is not worth an exact figure

// The list ends with one that does not fit, where there is one: data parallel training, if it is
// that. Why it was not taken is what people ask first.
void shorten(std::vector<Alternative>& list) {
  if (list.size() <= kRejected) return;
  const auto does_not_fit = [](const Alternative& a) { return !a.evaluated.fits(); };
  auto kept = std::ranges::find_if(list, [&](const Alternative& a) {
    return does_not_fit(a) && a.evaluated.layout.groups() == 1;
  });
  if (kept == list.end()) kept = std::ranges::find_if(list, does_not_fit);
  if (kept != list.end() && kept >= list.begin() + kRejected) std::swap(list[kRejected - 1], *kept);
  list.resize(kRejected);
}

}  // namespace

Family family_of(const Layout& layout) {
  return {layout.schedule, layout.stages(), layout.chunks};
}

void Findings::consider(const Layout& layout) {
  if (!objective_.possible(layout)) return;
  Evaluated result = objective_.cost(layout);
  if (result.fits()) {
    const auto known = best_of_.find(family_of(layout));
    const bool known_fits = known != best_of_.end() && known->second.fits();
    const double bound = lower_bound(layout.shape(), result.times);
    if (known_fits && bound >= known->second.seconds) return;
    if (known_fits && bound >= kFarFromBest * best_->seconds) return;
    result.seconds = objective_.steps().step_seconds(layout.shape(), result.times);
    ++evaluations;
  }
  take(std::move(result));
}

void Findings::consider_variants(Layout layout, const SearchOptions& options) {
  for (const bool sharded : options.sharded)
    for (const Placement placement : {Placement::together, Placement::apart}) {
      layout.sharded_optimizer = sharded;
      layout.placement = placement;
      consider(layout);
    }
}

void Findings::take(Evaluated evaluated) {
  const auto rank = [](const Evaluated& e) {
    return std::pair(!e.fits(), e.fits() ? e.seconds : e.missing_bytes);
  };
  if (evaluated.fits() && (!best_ || evaluated.seconds < best_->seconds)) best_ = evaluated;
  const Family family = family_of(evaluated.layout);
  const auto known = best_of_.find(family);
  if (known == best_of_.end() || rank(evaluated) < rank(known->second))
    best_of_.insert_or_assign(family, std::move(evaluated));
}

std::vector<Evaluated> Findings::fitting() const {
  std::vector<Evaluated> list;
  for (const auto& [family, evaluated] : best_of_)
    if (evaluated.fits()) list.push_back(evaluated);
  std::ranges::stable_sort(list, {}, &Evaluated::seconds);
  return list;
}

std::vector<Alternative> Findings::rejected() const {
  std::vector<Alternative> list;
  for (const auto& [family, evaluated] : best_of_)
    if (!best_ || evaluated.layout != best_->layout) list.push_back({evaluated, reason(evaluated)});
  std::ranges::stable_sort(list, {}, [](const Alternative& a) {
    const Evaluated& e = a.evaluated;
    return std::pair(!e.fits(), e.fits() ? e.seconds : e.missing_bytes);
  });
  shorten(list);
  return list;
}

std::string Findings::reason(const Evaluated& evaluated) const {
  if (!evaluated.fits())
    return fmt::format("lacks {} of memory on a device",
                       format_size(static_cast<int64_t>(evaluated.missing_bytes)));
  return fmt::format("{:.1f} % slower", 100 * (evaluated.seconds / best_->seconds - 1));
}

}  // namespace renkei::plan
