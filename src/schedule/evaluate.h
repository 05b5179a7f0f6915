// How long does a step take? A schedule is executed in virtual time: each group does its list in
// order, and what it waits for comes from the others.
//
//   compute     takes the time of the stage
//   send        starts when the link of these two stages is free in this direction, and takes the
//               time of the transfer; compute goes on meanwhile
//   receive     waits until the transfer is over
//   reduce      r seconds in k buckets, which become ready evenly during the last backward: over
//               when the last bucket is, r/k after backward, or r after the first was ready
//   update      takes its time, and the gathering of what other replicas updated
//
// The result grows with each of the times: it is a longest path.
#pragma once

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
  std::vector<double> busy_seconds;        // of each group: computing
  std::vector<std::vector<Event>> events;  // of each group, when asked for; waits are the gaps

  // The share of all groups' time in which they do not compute.
  double bubble() const;
};

enum class Record { no, events };

// A bug Error when tasks wait for each other.
Evaluation evaluate(const Schedule& schedule, const plan::Shape& shape,
                    std::span<const plan::StageTimes> stages, Record record = Record::no);

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
