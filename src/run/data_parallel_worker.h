// A rank that holds the whole network and takes its share of every batch.
#pragma once

#include <memory>

#include "run/batch_loader.h"
#include "run/execution_context.h"
#include "run/executor.h"
#include "run/flat_parameters.h"
#include "run/trainer.h"
#include "run/worker.h"

namespace renkei::run {

class DataParallelWorker : public Worker {
 public:
  // All ranks together; afterwards they have the parameters of rank 0.
  DataParallelWorker(const TrainJob& job, const TrainOptions& options);

  void begin_step(const StepPosition& position, double learning_rate) override;
  void execute(const schedule::Task& task) override;
  double end_step() override;
  std::vector<ParameterUpdater*> updaters() override { return {updater_.get()}; }
  void average_buffers(const comm::Call& call) override;
  Evaluation evaluate(const comm::Call& call) override;
  std::string collect_parameters(const comm::Call& call) override;
  Held held() const override;

 private:
  void take_initial_state();
  void forward(const schedule::Task& task);
  void backward(const schedule::Task& task);
  comm::Call call(std::string_view operation) const;

  TrainJob job_;
  TrainOptions options_;
  ExecutionContext context_;
  Executor executor_;
  std::vector<torch::Tensor> state_;  // of the executor
  bool values_are_shared_ = false;    // by the ranks of the host
  std::unique_ptr<FlatParameters> parameters_;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<ParameterUpdater> updater_;

  // Of the step under way.
  StepPosition position_{};
  double learning_rate_ = 0;
  int64_t global_samples_ = 0;
  Batch batch_;         // of the micro-batch under way
  torch::Tensor loss_;  // its loss, scaled to the global batch
  double loss_sum_ = 0;
};

}  // namespace renkei::run
