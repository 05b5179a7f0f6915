// A training job on this rank, for any front end to drive: open, step, evaluate, save, restore,
// close.
//
//   Session session(job, options);
//   while (session.next_step() < session.steps()) session.step();
//   session.close();
//
// The training loop as MN-1's authors count it:
//
//   1 shuffle   2 batch   3 forward   4 loss   5 gradients   (allreduce)   6 update
//   7 next batch   8 next epoch
//
// 1, 7 and 8 are here; 2 to 6 are the tasks of the schedule, done by the worker. All functions are
// called by all ranks together, unless they say otherwise.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "data/sampler.h"
#include "run/device_memory.h"
#include "run/memory_count.h"
#include "run/op_recorder.h"
#include "run/worker.h"

namespace renkei::job {

class Session {
 public:
  // What the job refers to must outlive the session. Stages begin with the parameters of their
  // first rank.
  Session(const run::TrainJob& job, const run::TrainOptions& options);
  ~Session();  // does not communicate
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int64_t steps() const { return steps_; }
  int64_t epochs() const;
  int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }

  // Counts on over all epochs. A session may begin anywhere: samples, random numbers and learning
  // rate depend on the step alone. Not collective.
  int64_t next_step() const { return next_step_; }
  void go_to(int64_t step) { next_step_ = step; }

  run::StepReport step();
  // Whether the step that was done last ended an epoch, or the training. Not collective.
  bool at_end_of_epoch() const;
  // Running statistics become their mean over the ranks, then the held-out samples are evaluated;
  // none where there are none.
  std::optional<run::Evaluation> evaluate();

  // Where the training is, in memory; restored under the same plan, on as many ranks.
  struct Snapshot {
    int64_t next_step = 0;
    run::Worker::Snapshot rank;
  };
  Snapshot save();
  void restore(const Snapshot& snapshot);

  // The same for files (checkpoints.h): what this rank writes, memory that the next step changes;
  // and where the training is. Not collective.
  std::vector<checkpoint::Run> runs() { return worker_->runs(); }
  checkpoint::Progress progress() const;
  // From files, whatever the plan and the number of ranks. A usage Error where the batch, the data
  // or the optimizer is another.
  void restore(checkpoint::Reader& reader);

  // What this rank tells the others with the loss of the next step, and what they all told with
  // that of the last.
  void vote(const run::Votes& mine) { mine_ = mine; }
  const run::Votes& votes() const { return worker_->votes(); }

  // The update of this step will be left out, when it comes. False where it has been before, or too
  // many others: then it does not help.
  bool leave_out(int64_t step) {
    constexpr size_t kMost = 10;
    return left_out_.size() < kMost && left_out_.insert(step).second;
  }

  // For rehearsals: wrong gradients of this rank in the next step, or a parameter of it that only
  // this rank has with another value from now on.
  void corrupt_gradients() { worker_->corrupt_gradients(); }
  void drift();
  // Puts a value that is not a number among the parameters of this rank, to see what comes of it.
  void spoil();

  comm::Communicator& communicator() { return job_.communicator; }
  const plan::Plan& plan() const { return job_.plan; }

  // Of the steps so far.
  run::TrainResult result();
  // Writes a safetensors file that Python's load_state_dict takes, on rank 0, tensor by tensor: no
  // rank ever holds those of others beside its own.
  void save_weights(const std::filesystem::path& file);
  // A tensor of the training state, on rank 0; undefined elsewhere.
  torch::Tensor fetch(size_t place);
  // The network of rank 0 gets all tensors, also those of other stages.
  void collect();

  // An orderly end: the network gets its tensors back.
  void close();

 private:
  void check_finite(double loss, int64_t step);
  comm::Call call(std::string_view operation) const;

  run::TrainJob job_;
  run::TrainOptions options_;
  data::Sampler sampler_;
  int64_t steps_;
  int64_t next_step_ = 0;
  std::set<int64_t> left_out_;
  int not_finite_ = 0;  // steps without a finite loss, one after the other
  run::Votes mine_;
  std::unique_ptr<data::PeerCache> peers_;
  run::MemoryCount memory_;
  std::unique_ptr<run::Worker> worker_;
  std::optional<run::DeviceMemory> device_;
  timeline::Recorder recorder_;
  std::optional<run::OpRecorder> operations_;
  double memory_asked_ = 0;
  run::TrainResult result_;
};

// From the next step to the last, with an evaluation after every epoch; tells the observer.
void train(Session& session, run::Observer& observer);

// All of it: opens a session, trains, collects the network on rank 0 and closes.
run::TrainResult train(const run::TrainJob& job, const run::TrainOptions& options,
                       run::Observer& observer);

}  // namespace renkei::job
