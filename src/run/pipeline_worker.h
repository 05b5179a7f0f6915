// A rank that holds some stages of the network.
//
// Each stage is a part of the program (run/cut_program.h). Values cross to the next stage as
// they are, their gradients come back; where a value is used by several stages, those in between
// pass it on, and its gradients add up on the way back in the order in which one process would add
// them: from the last use to the first.
//
//   tied parameters    those that several stages use are on all their ranks; gradients are summed
//                      over all of these after the stages' own
//   recompute          a stage keeps only what came in, and computes forward again before backward,
//                      with the same random numbers and with copies of the running statistics
//   two-part backward  the gradients of parameters of our kernels are put off; others are computed
//                      with those of the inputs
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "comm/sub_transport.h"
#include "plan/stage_values.h"
#include "run/batch_loader.h"
#include "run/flat_parameters.h"
#include "run/lanes.h"
#include "run/stage_links.h"
#include "run/trainer.h"
#include "run/worker.h"

namespace renkei::run {

class PipelineWorker : public Worker {
 public:
  // All ranks together; the stages begin with the parameters of rank 0. Parameters of other stages
  // leave the memory of this rank.
  PipelineWorker(const TrainJob& job, const TrainOptions& options);

  void begin_step(const StepPosition& position, double learning_rate) override;
  void execute(const schedule::Task& task) override;
  double end_step() override;
  std::vector<ParameterUpdater*> updaters() override;
  void average_buffers(const comm::Call& call) override;
  Evaluation evaluate(const comm::Call& call) override;
  std::string collect_parameters(const comm::Call& call) override;
  Held held() const override;

 private:
  // Ranks that have the same parameters, of a stage or tied, and what they do with them.
  struct Group {
    std::vector<int> ranks;
    std::vector<int> parameters;  // in state_
    std::unique_ptr<comm::SubTransport> transport;
    std::unique_ptr<comm::Communicator> communicator;
    std::unique_ptr<FlatParameters> flat;
    std::unique_ptr<ParameterUpdater> updater;
  };
  struct MicroBatch {
    int64_t samples = 0;
    Batch batch;
    std::map<int, torch::Tensor> received;   // values from the stage before
    std::map<int, torch::Tensor> leaves;     // the same, as the beginning of autograd's graph,
    std::map<int, torch::Tensor> inner;      // and as the program gets them
    std::vector<torch::Tensor> made;         // values for the stage behind
    std::map<int, torch::Tensor> gradients;  // of values, from the stage behind
    std::map<int, torch::Tensor> input_gradients;  // for the stage before
    std::unique_ptr<DeferredGradients> put_off;
  };
  struct Stage {
    int number = 0;
    std::vector<int> ranks;
    int replica = 0;
    LaneRange lanes;
    bool recompute = false;
    std::optional<Executor> training, evaluation;
    std::vector<int> buffers;  // in state_
    Group group;
    std::vector<MicroBatch> micro_batches;
  };

  void check_options() const;
  void cut_network();
  std::vector<std::vector<int>> stages_of_parameters() const;
  std::vector<std::vector<int>> stages_in_evaluation(
      const std::vector<std::vector<int>>& stages_of) const;
  void divide_parameters(const std::vector<std::vector<int>>& stages_of);
  void open_group(Group& group, int channel, bool overlap);

  Stage& stage(int number);
  MicroBatch& micro_batch(const schedule::Task& task);
  std::vector<torch::Tensor> state_for(const Executor& executor,
                                       const std::vector<torch::Tensor>& state,
                                       bool copy_buffers) const;
  std::vector<torch::Tensor> compute(Stage& stage, const Executor& executor, MicroBatch& micro,
                                     const StagedProgram& network, bool with_gradients, bool again);
  void forward(const schedule::Task& task);
  void backward(const schedule::Task& task);
  void start_update(Group& group);

  static StageLinks::Values outgoing(const plan::StageValues& values, const MicroBatch& micro);
  StageLinks::End end_at(const schedule::Task& task);
  void send(const schedule::Task& task);
  void receive(const schedule::Task& task);
  void post_next_receive();
  comm::Call call(std::string_view operation) const;

  TrainJob job_;
  TrainOptions options_;
  comm::Transport& world_;
  ExecutionContext context_;
  Lanes lanes_;
  std::optional<Lanes> evaluation_lanes_;
  std::vector<torch::Tensor> state_;          // of the whole network
  std::vector<std::vector<int64_t>> shapes_;  // of these, also where this rank has them not
  std::vector<std::vector<int>> holders_;     // the ranks that have each
  StagedProgram training_;
  std::optional<StagedProgram> evaluation_;
  std::vector<Stage> stages_;  // of this rank
  std::vector<Group> tied_;
  std::unique_ptr<BatchLoader> loader_;
  schedule::TaskList tasks_;
  StageLinks links_;

  // Of the step under way.
  StepPosition position_{};
  double learning_rate_ = 0;
  int64_t global_samples_ = 0;
  double loss_sum_ = 0;
  size_t next_receive_ = 0;  // in tasks_, the first that is not posted
  std::optional<StageLinks::Incoming> posted_;
};

}  // namespace renkei::run
