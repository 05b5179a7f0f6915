// What a training run tells: on the way to an observer, at the end as a result. Plain data, so that
// those who only show it need no Torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "timeline/rank_file.h"
#include "timeline/recorder.h"

namespace renkei::run {

struct Evaluation {
  double loss = 0;                 // mean over all samples
  std::optional<double> accuracy;  // of a classification
  int64_t samples = 0;
};

struct StepReport {
  int64_t epoch = 0, epochs = 0;  // counted from 0; how many there will be
  int64_t step = 0, steps = 0;    // over all epochs
  int64_t samples = 0;            // in this step, over all ranks
  double loss = 0;
  double learning_rate = 0;
  double seconds = 0;
};

// Gets told what happens, on every rank.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_step(const StepReport& report) = 0;
  virtual void on_evaluation(int64_t step, const Evaluation& evaluation) = 0;
};

// Of one rank, in bytes. What ranks of a host share counts in equal parts.
struct MemoryBreakdown {
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t activations = 0;  // the most that tensors of a step took
  int64_t other = 0;        // libraries, kernels' scratch, pieces kept for later tensors
  int64_t peak = 0;         // what the process used, as the system counts
  int64_t device = 0;       // the most that a device of its own would have held

  int64_t accounted() const { return parameters + gradients + optimizer + activations + other; }
};

struct TrainResult {
  int64_t parameters = 0;
  std::string checksum;  // of the parameters at the end
  int64_t steps = 0, epochs = 0;
  int64_t samples = 0;  // over all ranks
  double loss_first = 0, loss_last = 0;
  std::optional<Evaluation> evaluation;         // after the last step
  std::vector<timeline::StepTimes> step_times;  // of this rank
  std::vector<MemoryBreakdown> memory;          // of all ranks
};

}  // namespace renkei::run
