// A recorded step once more, in virtual time and with one thing changed: what would it have taken?
//
// schedule/evaluate executes the recorded lists. Its rules say who waits for whom; from the record
// come the seconds that each task took by itself, what a transfer took when both ends were ready,
// and what was left of a reduction when the last replica had come. What a rank does between its
// tasks counts to the task that follows. Unchanged, the result should be the step as it was; how
// far it is off says how far the changed ones can be believed.
#pragma once

#include <map>
#include <tuple>

#include "report/recorded_step.h"
#include "schedule/evaluate.h"

namespace renkei::report {

struct ReplayTimes {
  using Key = std::tuple<int, schedule::TaskKind, int, int>;  // rank, kind, stage, micro-batch
  using Transfer = std::tuple<int, int, int, int, int>;  // from, to, stage, its peer, micro-batch
  std::map<Key, double> seconds;
  std::map<Transfer, double> transfers;
  std::map<std::pair<int, int>, double> usual_transfer;  // between two ranks
  std::vector<schedule::RankedStep::Reduction> reductions;
  std::vector<double> late;  // of each rank: so long after the first it begins with the step
};
ReplayTimes times_of(const RecordedStep& step);

schedule::Evaluation replay(const RecordedStep& step, const ReplayTimes& times,
                            schedule::Record record = schedule::Record::no);

// The changes. Each takes one cause away.
void all_begin_together(ReplayTimes& times);
void without_loading(ReplayTimes& times);
void without_communication(ReplayTimes& times);
void half_the_bytes(ReplayTimes& times);
// Replicas of a stage compute as fast as the median of them does; of two, as the faster.
void equal_ranks(const RecordedStep& step, ReplayTimes& times);
void rank_as_its_median(const RecordedStep& step, int rank, ReplayTimes& times);
// Each rank has as much to compute, and the sum stays.
void balanced_stages(const RecordedStep& step, ReplayTimes& times);

}  // namespace renkei::report
