// Which layouts are worth an evaluation? For each family, the splits with the best estimates.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "plan/findings.h"
#include "plan/splits.h"

namespace renkei::plan {

struct Proposal {
  double estimate = 0;
  Layout layout;

  // clang-tidy 14 takes the zero of a defaulted comparison for a pointer.
  auto operator<=>(const Proposal&) const = default;  // NOLINT(modernize-use-nullptr)
};

class Proposer {
 public:
  // What does not fit is told to `findings`, and what looks best is evaluated at once: the best so
  // far shows what is hopeless.
  Proposer(const Objective& objective, const SearchOptions& options,
           const std::function<bool()>& expired, Findings& findings);

  // Stages of equal times, for all numbers of stages and micro-batches: at once.
  void propose_equal_times();
  // Those of dynamic programming with m micro-batches.
  void propose_splits(int m);

  const std::map<Family, std::set<Proposal>>& proposals() const { return proposals_; }

 private:
  bool allows(ScheduleKind kind) const;
  void propose(const SplitOptions& options);
  void evaluate_newest();
  bool hopeless(int m, int replicas) const;
  void keep(int m, const Split& split, bool for_gpipe);
  void keep(Layout layout, const std::vector<ScheduleKind>& kinds);

  const Objective& objective_;
  const SearchOptions& options_;
  const std::function<bool()>& expired_;
  Findings& findings_;
  int devices_;
  int most_chunks_ = 1;
  int most_stages_ = 1;
  bool differing_devices_ = false;
  std::optional<double> forward_share_;  // of all work, where it differs between ops
  std::map<Family, std::set<Proposal>> proposals_;
  std::optional<Proposal> newest_;  // the best since the last evaluation
};

}  // namespace renkei::plan
