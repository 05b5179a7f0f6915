// A run in virtual time with causes of delay that are known: what attribution has to find again.
#pragma once

#include <algorithm>
#include <vector>

#include "report/recorded_step.h"
#include "schedule/evaluate.h"

namespace renkei::test {

struct VirtualRun {
  plan::ScheduleKind kind = plan::ScheduleKind::accumulate;
  int stages = 1, replicas = 1, micro_batches = 1, steps = 6;
  double forward = 0.010;               // of a micro-batch; backward is twice as long
  std::vector<double> stage_work = {};  // factors; empty: all alike
  std::vector<double> slowness = {};    // factors of ranks
  double load = 0.0001, transfer = 0, reduce = 0, update = 0.001, loss = 0.0001;

  int ranks() const { return stages * replicas; }

  schedule::RankedStep step() const {
    schedule::RankedStep step{.lists = {},
                              .ranks_of = {},
                              .stages = stages,
                              .micro_batches = micro_batches,
                              .reductions = {},
                              .seconds = {},
                              .transfer = {}};
    const auto schedule = schedule::make_schedule(
        {.kind = kind, .stages = stages, .micro_batches = micro_batches, .chunks = 1});
    for (int s = 0; s < stages; ++s) {
      step.ranks_of.emplace_back();
      for (int r = 0; r < replicas; ++r) {
        step.ranks_of.back().push_back(s * replicas + r);
        step.lists.push_back(schedule[static_cast<size_t>(s)]);
      }
      step.reductions.push_back({.seconds = replicas > 1 ? reduce : 0, .buckets = 1});
    }
    step.seconds = [this](int rank, const schedule::Task& task) {
      using schedule::TaskKind;
      const double work = (stage_work.empty() ? 1 : stage_work[static_cast<size_t>(task.stage)]) *
                          (slowness.empty() ? 1 : slowness[static_cast<size_t>(rank)]);
      switch (task.kind) {
        case TaskKind::forward:
          return forward * work;
        case TaskKind::backward:
          return 2 * forward * work;
        case TaskKind::load:
          return load;
        case TaskKind::update:
          return update;
        case TaskKind::loss:
          return loss;
        default:
          return 0.0;
      }
    };
    step.transfer = [this](int, int, const schedule::Task&) { return transfer; };
    return step;
  }

  double step_seconds() const { return evaluate(step()).seconds; }

  std::vector<timeline::RankTimeline> record() const {
    const schedule::RankedStep one = step();
    const auto evaluation = evaluate(one, schedule::Record::all);
    std::vector<timeline::RankTimeline> timelines(static_cast<size_t>(ranks()));
    for (size_t r = 0; r < timelines.size(); ++r) {
      timeline::RankTimeline& timeline = timelines[r];
      timeline.info = {.rank = static_cast<int>(r), .ranks = ranks(), .host = "virtual"};
      timeline.finished = true;
      for (int64_t step = 0; step < steps; ++step) {
        const double begin = static_cast<double>(step) * evaluation.seconds;
        timeline::StepRecord sums{
            .step = step, .begin = begin, .times = {.seconds = evaluation.seconds}, .samples = 8};
        for (const schedule::Event& event : evaluation.events[r]) {
          const bool crosses = event.task.kind == schedule::TaskKind::send ||
                               event.task.kind == schedule::TaskKind::receive;
          timeline.events.push_back(
              {.name = name_of(event.task.kind),
               .begin = begin + event.begin,
               .end = begin + event.end,
               .step = step,
               .index = event.task.micro_batch,
               .stage = event.task.stage,
               .peer = crosses ? peer_of(static_cast<int>(r), event.task) : -1,
               .peer_stage = crosses ? event.task.peer : -1});
          if (event.task.kind == schedule::TaskKind::update)
            sums.times[timeline::Category::update] += event.end - event.begin;
        }
        timeline.steps.push_back(sums);
        timeline.last_seen = sums.end();
      }
    }
    return timelines;
  }

 private:
  int peer_of(int rank, const schedule::Task& task) const {
    return rank + (task.peer - task.stage) * replicas;
  }
};

}  // namespace renkei::test
