// In which order is the work of a step done? A schedule is data: a list of tasks for every rank.
// `run` executes it for real, `sim` in virtual time; a new schedule is a new generator and nothing
// else.
//
// Lists are executed in order, and the whole step is in them. A send only begins a transfer, and so
// does an expect at the other end: the list goes on, and a receive waits for what was expected.
// From begin_reduce on, gradients that are complete are summed over the replicas, bucket by bucket,
// beside the backward that follows; reduce waits for the rest.
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
  expect,           // begins to receive their counterpart
  receive,          // waits for it
  begin_reduce,     // the sum of the gradients over the replicas may begin
  reduce,           // waits for it
  norm,             // of all gradients, over all ranks: what clipping and loss scaling go by
  update,           // of the parameters
  loss,             // its sum over all ranks
};
bool is_compute(TaskKind kind);  // forward, and backward in all its parts
std::string_view name_of(TaskKind kind);

struct Task {
  TaskKind kind;
  int micro_batch = 0;
  int stage = 0;  // whose work this is; from Shape::stages on, a set of tied parameters
  int peer =
      -1;  // of a send, expect or receive: the stage at the other end, stage + 1 or stage - 1

  bool operator==(const Task&) const = default;
};

using TaskList = std::vector<Task>;

// The tasks of one step for each group of ranks that computes the same stages. Ranks of a group
// have the same list.
using Schedule = std::vector<TaskList>;

// What a step has beside the order of its computations.
struct StepParts {
  std::vector<bool> loads = {};  // whether stage s loads inputs; empty: the first and the last do
  // Parameters that several stages use: of each set the stages. They are reduced and updated last.
  std::vector<std::vector<int>> tied = {};
  bool norm = false;  // updates wait for the norm of all gradients
};

// Throws a usage Error when the kind does not allow the numbers of the shape.
Schedule make_schedule(const plan::Shape& shape, const StepParts& parts = {});

// The tasks of one step, for one rank; `parts.loads` are those of the plan.
TaskList make_schedule(const plan::Plan& plan, int rank, StepParts parts = {});

// The tasks that evaluate one batch: forward only.
TaskList make_evaluation(const plan::Plan& plan, int rank, const std::vector<bool>& loads);

// A step of which a program outside does the loss: what is computed forward, whatever order the
// plan names, and, when the gradients of the outputs are known, backward, with all that follows.
struct Halves {
  TaskList forward, backward;
};
Halves make_halves(const plan::Plan& plan, int rank, StepParts parts);

}  // namespace renkei::schedule
