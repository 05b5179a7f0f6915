// Faults on purpose, to rehearse what happens: --set fault.kill="rank=1,step=20". Several, with ';'
// between them, happen one in each start of the job, so that restarts can be rehearsed too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/settings.h"

namespace renkei::job {

void declare_fault_settings(Settings& settings);

// Starts of the job that came before this one; a supervisor that starts it again says so here.
inline constexpr const char* kStartsVariable = "RENKEI_EARLIER_STARTS";

class Faults {
 public:
  // Throws a usage Error. `earlier_starts`: as in kStartsVariable.
  Faults(const Settings& settings, int rank, int earlier_starts);
  static int earlier_starts();

  // Does what is due: the process may not live on.
  void before_step(int64_t step) const;
  // What a rank does to itself before a step: a value that is not a number among the parameters,
  // wrong gradients, a parameter that its replicas do not have, a disk that is full from then on.
  bool nan_before(int64_t step) const { return nan_ == step; }
  bool corrupts_gradient_before(int64_t step) const { return corrupt_gradient_ == step; }
  bool drifts_before(int64_t step) const { return drift_ == step; }
  bool disk_full_at(int64_t step) const { return enospc_ && step >= *enospc_; }

 private:
  // The step, where this rank is meant.
  std::optional<int64_t> kill_, stop_, slow_, nan_, corrupt_gradient_, drift_, enospc_, drop_link_;
};

}  // namespace renkei::job
