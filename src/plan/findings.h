// What a search has found so far: the best layout of each family.
#pragma once

#include <map>
#include <optional>

#include "plan/search.h"

namespace renkei::plan {

// Layouts that are compared among themselves before they are compared with others.
struct Family {
  ScheduleKind schedule = ScheduleKind::accumulate;
  int stages = 1;
  int chunks = 1;

  // clang-tidy 14 takes the zero of a defaulted comparison for a pointer.
  auto operator<=>(const Family&) const = default;  // NOLINT(modernize-use-nullptr)
};
Family family_of(const Layout& layout);

class Findings {
 public:
  explicit Findings(const Objective& objective) : objective_(objective) {}

  // Evaluates a layout, unless its bound shows that it is not the best of its family, or far from
  // the best of all. What does not fit is kept only where nothing does.
  void consider(const Layout& layout);
  // With the optimizer sharded or not, and in each placement.
  void consider_variants(Layout layout, const SearchOptions& options);
  // A layout that was evaluated elsewhere.
  void take(Evaluated evaluated);

  const std::optional<Evaluated>& best() const { return best_; }
  std::vector<Evaluated> fitting() const;  // the best of each family, fastest first
  // Without the best of all: why each lost. The fastest come first.
  std::vector<Alternative> rejected() const;

  int64_t evaluations = 0;

 private:
  std::string reason(const Evaluated& evaluated) const;

  const Objective& objective_;
  std::optional<Evaluated> best_;
  std::map<Family, Evaluated> best_of_;
};

}  // namespace renkei::plan
