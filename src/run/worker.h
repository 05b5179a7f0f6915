// What one rank does of a plan, task by task: it holds some stages, each with its replicas on other
// ranks. Data parallel training is one stage whose replicas are all ranks.
//
//   stage_list of the plan ──► Stage            what is computed        (stage.h)
//                              StageLinks       what crosses            (stage_links.h)
//                              SharedParameters what is reduced, updated (shared_parameters.h)
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "checkpoint/shard.h"
#include "optim/loss_scale.h"
#include "plan/parameter_sets.h"
#include "run/result.h"
#include "run/shared_parameters.h"
#include "run/stage.h"
#include "run/stage_links.h"
#include "run/train_options.h"
#include "schedule/schedule.h"

namespace renkei::run {

struct TrainJob {
  Model& model;
  const data::Dataset& train_data;
  const data::Dataset* held_out;  // null: no evaluation
  comm::Communicator& communicator;
  plan::Plan plan;
  timeline::RankFile* timeline = nullptr;  // null: only sums are kept
  bool called = false;  // batches come with calls (called_network.h), not from the data
};

struct StepPosition {
  int64_t epoch, step_in_epoch;  // which samples
  int64_t step;                  // counts on over all epochs
};

// What ranks tell each other with the loss of a step: each says what it wants, all learn how many
// want it.
struct Votes {
  double stop = 0;     // after this step
  double save = 0;     // a checkpoint is due
  double written = 0;  // this rank's part of the last one is on the disk
};

class Worker {
 public:
  // All ranks together; stages begin with the parameters of their first rank. What other stages
  // have leaves the memory of this rank.
  Worker(const TrainJob& job, const TrainOptions& options);
  ~Worker();  // does not communicate

  // A step: begin_step(), then each of tasks() in order.
  const schedule::TaskList& tasks() const { return training_->tasks; }
  void begin_step(const StepPosition& position, double learning_rate, const Votes& mine = {});
  void execute(const schedule::Task& task);
  double loss() const { return loss_sum_; }  // after the last task: of the batch, over all ranks
  const Votes& votes() const { return votes_; }  // likewise

  std::vector<ParameterUpdater*> updaters();
  // Of the send or receive that was executed last.
  const StageLinks::Moved& moved() const { return links_.moved(); }

  // Running statistics differ from rank to rank; before they are used they become their mean.
  void average_buffers(const comm::Call& call);
  Evaluation evaluate(const comm::Call& call);

  // All ranks together. Of the parameters, in their order, computed where they are.
  std::string checksum(const comm::Call& call);
  // All ranks together: whether replicas still have the same parameters. A check Error names those
  // that differ from most.
  void compare_replicas(const comm::Call& call);
  // The next step computes, but changes nothing.
  void leave_out_update() { leave_out_ = true; }
  // The gradients of this rank will be wrong in the next step, to see what comes of it.
  void corrupt_gradients() { gradient_factor_ = kWrong; }
  // All ranks together: a tensor of the state, on rank 0 (undefined elsewhere).
  torch::Tensor fetch(size_t place, const comm::Call& call);
  // All ranks together: the network of rank 0 gets all tensors, also those of other stages.
  void collect(const comm::Call& call);
  // All ranks together, at an orderly end. The tensors of the network get memory of their own
  // again; what ranks had in common is gone, and nothing may be called any more.
  void close();

  Held held() const;

  // What this rank needs to go on from here, in memory: under the same plan, on as many ranks.
  struct Snapshot {
    std::map<int, torch::Tensor> state;  // by place; parameters and buffers that it holds
    std::map<int, std::vector<torch::Tensor>> optimizer;  // by set: of each bucket and state
    optim::LossScale loss_scale;
  };
  Snapshot snapshot();
  void restore(const Snapshot& snapshot, const comm::Call& call);  // all ranks together

  // The same for files, whatever the plan (worker_state.cpp): what this rank writes of parameters,
  // buffers and optimizer state, such that all ranks together write each element once. Memory that
  // the next step changes.
  std::vector<checkpoint::Run> runs();
  void restore(checkpoint::Reader& reader, const comm::Call& call);  // all ranks together
  const optim::LossScale& loss_scale() const { return loss_scale_; }

 protected:
  static constexpr double kWrong = -1e4;

  // The network in stages, in training or in evaluation.
  struct Phase {
    StagedNetwork network;
    Lanes lanes;
    schedule::TaskList tasks;
    std::list<Stage> stages = {};  // of this rank
    BatchLoader* loader = nullptr;
    Stage::Mode mode = Stage::Mode::training;
  };

  void place_stages(Phase& phase);
  void prepare_evaluation();
  void divide_state();
  void join_tensor_group();
  int group_number(int set) const;
  void find_free_groups();
  int channel(int group) const;
  void prepare_batch_norm();
  // Of every micro-batch of every replica, in the first and the last step of an epoch.
  struct SampleCount {
    int64_t step;
    int replicas;
    int64_t samples;
  };
  std::vector<SampleCount> sample_counts() const;
  data::SamplerOptions sampling() const;
  // For the stages of this rank; only the fields that they use are read.
  std::unique_ptr<BatchLoader> make_loader(const Phase& phase, const data::Dataset& data,
                                           data::LoaderOptions options) const;

  void load(const schedule::Task& task);
  void expect(const schedule::Task& task);
  void receive(const schedule::Task& task);
  void send(const schedule::Task& task);
  void forward(const schedule::Task& task);
  void backward(const schedule::Task& task);
  void backward_weight(const schedule::Task& task);
  void begin_reduce(const schedule::Task& task);
  void find_drift(std::span<const uint64_t> sums, const program::Program& program,
                  const plan::ParameterSet& set) const;
  void restore_place(size_t place, checkpoint::Reader& reader);
  void take_norm();
  void sum_loss();

  Stage& stage(int number);
  MicroBatch& micro_batch(const schedule::Task& task) {
    return stage(task.stage).micro_batch(task.micro_batch);
  }
  // Of what all ranks of a tensor group have alike, one speaks for all.
  bool speaks() const { return tensor_.index == 0; }
  // The first rank that has a part of a place of the state.
  int owner(size_t place, int tensor_index) const;
  SharedParameters& parameters(int set) { return *parameters_.at(set); }
  void compute_as(const Stage& stage);
  StageLinks::End end_at(const schedule::Task& task);
  comm::Call call(std::string_view operation) const;

  TrainJob job_;
  TrainOptions options_;
  comm::Transport& world_;
  ExecutionContext context_;
  plan::TensorPlace tensor_;                      // with whom this rank computes each op
  std::vector<std::vector<int>> ranks_of_stage_;  // those that have the same part of it
  std::unique_ptr<comm::SubTransport> tensor_transport_;
  std::unique_ptr<comm::Communicator> tensor_communicator_;  // null: it computes them alone
  std::vector<plan::ParameterSet> sets_;                     // of all stages, then tied ones
  int first_group_ = 0;                                      // number of its channels
  // Of each place of the state, the ranks that have the same part of it.
  std::vector<std::vector<int>> holders_;
  std::vector<std::vector<int>> stages_of_state_;
  std::unique_ptr<Phase> training_, evaluation_;
  std::map<int, std::unique_ptr<SharedParameters>> parameters_;  // those of this rank, by set
  std::map<int, std::unique_ptr<SharedParameters>> statistics_;  // to exchange them, by stage
  std::map<int, std::vector<torch::Tensor>> buffers_;            // by stage
  std::map<int, std::function<void(std::span<double>)>> sum_statistics_;
  optim::LossScale loss_scale_;
  std::unique_ptr<BatchLoader> loader_;
  StageLinks links_;

  // Of the step under way.
  Phase* phase_ = nullptr;
  StepPosition position_{};
  double learning_rate_ = 0;
  int64_t global_samples_ = 0;
  double loss_sum_ = 0;
  bool leave_out_ = false;
  double gradient_factor_ = 1;
  Votes votes_;
  std::array<double, 2> evaluated_{};  // sums of "loss" and "correct"
  std::optional<StageLinks::Incoming> expected_;
};

}  // namespace renkei::run
