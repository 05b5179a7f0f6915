// A network in stages that a program calls, as it would call a function, and whose loss it computes
// itself: forward gives the outputs, backward takes their gradients.
//
//   home       a rank brings a batch, gets its outputs, and gives their gradients
//   piece      the samples of one micro-batch that a replica of a stage computes
//
// The batches of all ranks are one, in rank order, of which each stage computes its pieces. With
// m micro-batches of l lanes each, where m l is a multiple of the ranks, every piece is part of one
// rank's batch. If it is all of it, a stage computes what the rank would: models that mix samples,
// as batch normalisation does, are right then, and so are outputs that belong to the whole batch,
// as a loss inside the model.
//
//   forward    homes ──inputs──► stages, which load ── … ──► outputs ──► homes
//   backward   homes ──gradients of outputs──► stages ── … ──► gradients of parameters, summed
//
// Gradients of parameters are means over the ranks, each of which means its own loss: what
// data-parallel training gives. They add up to those that are there, as autograd's do.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "run/device_memory.h"
#include "run/moves.h"
#include "run/worker.h"
#include "timeline/recorder.h"

namespace renkei::run {

class CalledNetwork : private Worker {
  struct Program;

 public:
  // What becomes of running statistics: those of rank 0's batches hold, or each replica has its
  // own, or these become their mean.
  enum class Buffers { rank0, mean, own };

  // All ranks together, as all that follows. The network is that of the job's model, whose outputs
  // may be any; the job is a called one.
  CalledNetwork(const TrainJob& job, const TrainOptions& options, Buffers buffers);
  ~CalledNetwork();

  // Another program of the same network, such as in evaluation mode: a number for forward(). The
  // network that it was made with has the number 0. `program` must outlive this object.
  int add(const BoundProgram& program);

  class Call {  // what backward needs
   private:
    friend class CalledNetwork;
    CalledNetwork::Program* program = nullptr;
    int64_t number = 0, step = 0, per_rank = 0;
    std::optional<Lanes> lanes = {};
    std::vector<std::vector<MicroBatch>> micro_batches = {};  // of each stage of this rank
    bool done = false;
  };
  struct Result {
    std::vector<torch::Tensor> outputs;  // of this rank's batch
    std::shared_ptr<Call> call;          // null: without gradients
  };
  using Inputs = std::map<std::string, torch::Tensor, std::less<>>;
  Result forward(int program, const Inputs& inputs, bool with_gradients);

  // Gradients of this rank's outputs; undefined: none. Without `reduce` those of the parameters
  // only add up on each rank, and the next backward with it sums them over the replicas.
  void backward(Call& call, const std::vector<torch::Tensor>& gradients, bool reduce);

  // All ranks must come here for the same purpose; otherwise a usage Error on all of them.
  enum class Purpose {
    forward,
    backward,
    state_dict,
    load_state_dict,
    save,
    load,
    norm,
    capture,  // of a program that add() will be given
    close,
    end
  };
  void meet(Purpose purpose) { meet(Words{static_cast<int64_t>(purpose)}); }

  // The ranks that have a place of the state, ascending.
  const std::vector<int>& holders(size_t place) const { return holders_[place]; }
  // Tasks are recorded from now on; null: they are not.
  void record(timeline::Recorder* recorder) { recorder_ = recorder; }
  int64_t steps() const { return step_; }  // forwards in training so far
  void go_to(int64_t step) { step_ = step; }
  // The device's limit ends with it.
  void close();
  using Worker::held;
  // From now on, when no rank has more than its own: the limit of the device's memory holds.
  void limit_device();

 private:
  static constexpr size_t kWords = 16, kMaskWords = 12;
  using Words = std::array<int64_t, kWords>;  // what a rank says of its purpose

  void prepare(Program& program);
  std::vector<Words> meet(const Words& mine);
  static int64_t samples_of(const Program& program, const Inputs& inputs);
  Lanes lanes_for(int64_t samples) const;
  torch::Tensor empty_output(size_t output, int64_t samples) const;
  void begin_micro_batches(int64_t per_rank);
  void exchange_buffers();
  void take_inputs(const Program& program, const Inputs& inputs, int64_t per_rank);
  std::vector<torch::Tensor> bring_outputs(const Program& program, int64_t per_rank);
  void bring_gradients(const Call& call, const std::vector<torch::Tensor>& gradients,
                       const std::vector<Words>& all);
  void prepare_gradients();
  void keep_reached(int set);
  void forget_unreached(bool everywhere);
  void execute(const schedule::Task& task);
  void execute_recorded(const schedule::Task& task);
  template <typename Use>
  void for_segments(int stage, int micro_batch, int64_t per_rank, const Use& use) const;

  Buffers buffers_policy_;
  std::vector<std::unique_ptr<Program>> programs_;
  int64_t step_ = 0, calls_ = 0;
  bool buffers_changed_ = false;                   // since they were exchanged
  bool gradients_are_reduced_ = true;              // those that are there
  std::map<int, std::vector<int64_t>> reached_;    // by set, before its reduction began
  std::map<int, std::vector<bool>> had_gradient_;  // by set, before this backward
  std::vector<Moves> loads_;                       // of each micro-batch
  std::map<std::pair<int, int>, std::vector<torch::Tensor>> results_;  // by stage, micro-batch
  std::optional<DeviceMemory> device_;
  timeline::Recorder* recorder_ = nullptr;
};

}  // namespace renkei::run
