// How long does a step take? Lists of tasks are executed in virtual time: each is done in order,
// and what it waits for comes from the others.
//
//   compute       takes the time of the stage
//   send, expect  begin a transfer when both have been reached and the link of these two is free in
//                 this direction; it takes its time, and both go on meanwhile
//   receive       waits until the transfer is over
//   reduce        r seconds in k buckets, which become ready evenly during the computation behind
//                 begin_reduce, on all replicas: over when the last bucket is, r/k after that, or
//                 r after the first was ready and the reduction before was over
//   norm, loss    wait for all
//   update        takes its time, and the gathering of what other replicas updated
//
// The result grows with each of the times: it is a longest path. A list is that of a group, whose
// ranks are alike, or that of a rank, where they may differ.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "plan/step_model.h"
#include "schedule/schedule.h"

namespace renkei::schedule {

struct Event {
  Task task;
  double begin = 0, end = 0;
};

struct Evaluation {
  double seconds = 0;                      // until the last group is done
  std::vector<double> busy_seconds;        // of each list: computing
  std::vector<std::vector<Event>> events;  // of each list, when asked for

  // The share of all lists' time in which they do not compute.
  double bubble() const;
};

enum class Record { no, events, all };  // events: what takes time on its own, waits are the gaps

// A bug Error when tasks wait for each other.
Evaluation evaluate(const Schedule& schedule, const plan::Shape& shape,
                    std::span<const plan::StageTimes> stages, Record record = Record::no);

// A step of single ranks.
struct RankedStep {
  std::vector<TaskList> lists;             // of each rank
  std::vector<std::vector<int>> ranks_of;  // of each stage, then of each set of tied parameters
  int stages = 1, micro_batches = 1;
  struct Reduction {
    double seconds = 0;
    int buckets = 1;
  };
  std::vector<Reduction> reductions;  // of each of these
  // Where ranks do not end a reduction together: when each of them does. Instead of `reductions`.
  struct Behind {
    int rank = 0;
    double begin = 0, end = 0;  // of the computation during which buckets become ready
    double network_free = 0;    // when its reduction before was over
  };
  std::function<std::vector<double>(int set, std::span<const Behind> members)> reduce = {};
  std::function<double(int rank, const Task& task)> seconds;           // on its own; not a transfer
  std::function<double(int from, int to, const Task& send)> transfer;  // between two ranks
};
Evaluation evaluate(const RankedStep& step, Record record = Record::no);

// For each stage, the most micro-batches that forward has done and backward has not.
std::vector<plan::InFlight> in_flight(const Schedule& schedule, const plan::Shape& shape);

// What the planner knows of schedules. Schedules are made once for each shape and kept.
class ScheduledSteps : public plan::StepModel {
 public:
  double step_seconds(const plan::Shape& shape,
                      std::span<const plan::StageTimes> stages) const override;
  std::vector<plan::InFlight> in_flight(const plan::Shape& shape) const override;

 private:
  const Schedule& schedule_of(const plan::Shape& shape) const;

  mutable std::map<plan::Shape, Schedule> schedules_;
  mutable std::map<plan::Shape, std::vector<plan::InFlight>> in_flight_;
};

}  // namespace renkei::schedule
