// What a rank does of a plan, task by task. Two kinds: each rank holds the whole network
// (data_parallel_worker.h), or some stages of it (pipeline_worker.h).
#pragma once

#include <string>
#include <vector>

#include "comm/transport.h"
#include "run/parameter_updater.h"
#include "run/result.h"
#include "schedule/schedule.h"

namespace renkei::run {

struct StepPosition {
  int64_t epoch, step_in_epoch;  // which samples
  int64_t step;                  // counts on over all epochs
};

class Worker {
 public:
  virtual ~Worker() = default;

  virtual void begin_step(const StepPosition& position, double learning_rate) = 0;
  virtual void execute(const schedule::Task& task) = 0;
  virtual double end_step() = 0;  // the sum of the losses of the batch, over all ranks

  virtual std::vector<ParameterUpdater*> updaters() = 0;

  // Running statistics differ from rank to rank; before they are used they become their mean.
  virtual void average_buffers(const comm::Call& call) = 0;
  virtual Evaluation evaluate(const comm::Call& call) = 0;

  // Makes the network of rank 0 whole, where it is in parts. Gives the checksum of all parameters.
  virtual std::string collect_parameters(const comm::Call& call) = 0;

  // Bytes of this rank.
  struct Held {
    int64_t parameters = 0;
    int sharers = 1;  // ranks that have them in common
    int64_t gradients = 0;
    int64_t optimizer = 0;
    bool in_tensors = false;  // the parameters are tensors of Torch's allocator

    // What a device of its own would hold beside tensors.
    int64_t beside_tensors() const { return gradients + optimizer + (in_tensors ? 0 : parameters); }
  };
  virtual Held held() const = 0;
};

}  // namespace renkei::run
