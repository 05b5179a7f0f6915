// In which order is the work of a step done? A schedule is data: a list of tasks for every rank.
// `run` executes it for real, `sim` in virtual time; a new schedule is a new generator and nothing
// else.
#pragma once

#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace renkei::schedule {

enum class TaskKind {
  load,      // the samples of a micro-batch become tensors
  forward,   // of a micro-batch
  backward,  // of a micro-batch; its gradients are added to those before
  reduce,    // sum of the gradients over the replicas
  update,    // of the parameters
};
std::string_view name_of(TaskKind kind);

struct Task {
  TaskKind kind;
  int micro_batch = 0;

  bool operator==(const Task&) const = default;
};

// The tasks of one step, for one rank.
std::vector<Task> make_schedule(const plan::Plan& plan, int rank);

}  // namespace renkei::schedule
