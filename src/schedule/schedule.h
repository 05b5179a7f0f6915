// In which order is the work of a step done? A schedule is data: a list of tasks for every rank.
// `run` executes it for real, `sim` in virtual time; a new schedule is a new generator and nothing
// else.
//
// Lists are executed in order. A send only begins the transfer, and the list goes on; a receive
// waits for it. The reduction of a stage begins, bucket by bucket, during its last backward; the
// task `reduce` waits for the rest.
#pragma once

#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/step_model.h"

namespace renkei::schedule {

enum class TaskKind {
  load,             // the samples of a micro-batch become tensors
  forward,          // of a micro-batch
  backward,         // of a micro-batch; its gradients are added to those before
  backward_input,   // only the gradient of the stage's inputs
  backward_weight,  // later: the gradient of the parameters
  send,             // outputs to the next stage, or gradients of inputs to the one before
  receive,          // their counterpart
  reduce,           // sum of the gradients over the replicas
  update,           // of the parameters
};
std::string_view name_of(TaskKind kind);

struct Task {
  TaskKind kind;
  int micro_batch = 0;
  int stage = 0;  // whose work this is
  int peer = -1;  // of a send or receive: the stage at the other end, stage + 1 or stage - 1

  bool operator==(const Task&) const = default;
};

using TaskList = std::vector<Task>;

// The tasks of one step for each group of ranks that computes the same stages. Ranks of a group
// have the same list.
using Schedule = std::vector<TaskList>;

// Throws a usage Error when the kind does not allow the numbers of the shape.
Schedule make_schedule(const plan::Shape& shape);

// The same with `loads[s]`: whether stage s loads inputs. By itself the first and the last do.
Schedule make_schedule(const plan::Shape& shape, const std::vector<bool>& loads);

// The tasks of one step, for one rank.
TaskList make_schedule(const plan::Plan& plan, int rank);

}  // namespace renkei::schedule
