// Sums the gradients over the ranks and updates the parameters, bucket by bucket, while backward
// still computes the gradients of earlier layers.
//
// Backward goes through the layers from the last to the first, so buckets are cut from the end of
// the flat buffers: bucket 0 holds the last layers. Torch tells when a parameter's gradient is
// complete; when all of a bucket are, it is handed to the reducer's thread. Buckets are views of
// the flat buffers, nothing is copied. Without overlap the same buckets are done in the same order
// after backward, so the bits are the same.
//
// The work can be divided: of every bucket, each rank updates one part, and only for these parts it
// keeps optimizer state. Ranks of a host that have the parameters in common divide it among
// themselves: the update is part of the reduction then, a rank reads the gradients of all ranks for
// its part, adds them in rank order and updates, in one pass over memory, and a barrier is all it
// takes to hand the parameters on. Over several hosts the gradients are reduced first, each rank
// getting the part that it updates. Ranks with parameters of their own can divide the work among
// all of them, and send each other what they have updated.
//
// Clipping and dynamic loss scaling need the norm of all gradients, of all stages, before the first
// update; then the updates come after the last reduction, which is not part of them.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "comm/async_reducer.h"
#include "comm/buffer/chunk_range.h"
#include "comm/communicator.h"
#include "optim/loss_scale.h"
#include "optim/optimizer.h"
#include "run/flat_parameters.h"

namespace renkei::run {

struct UpdateOptions {
  size_t bucket_bytes = 0;  // 0: chosen from the size of the network
  bool overlap = true;
  double timeout_seconds = 300;
  optim::OptimizerOptions optimizer;
  std::optional<double> clip_norm;
  optim::LossScaleOptions loss_scale;
  bool vectors_decay = true;     // biases and the like have weight decay too
  bool skip_not_finite = false;  // a step whose gradients are not all finite is left out
  // Gradients become their sum or mean over the ranks, and somebody else updates.
  std::optional<comm::Reduction> only_reduce = {};

  bool needs_norm() const { return clip_norm || loss_scale.dynamic || skip_not_finite; }
};

enum class Division {
  none,  // every rank updates everything
  host,  // the ranks of a host divide it; they have the values in common
  all    // all ranks divide it
};

class ParameterUpdater {
 public:
  ParameterUpdater(FlatParameters& parameters, Division division, comm::Communicator& communicator,
                   const UpdateOptions& options);
  ~ParameterUpdater();

  // Call before the backward that completes the gradients of a step. `update.gradient_scale` is
  // what the gradients are to be multiplied with.
  void start(int64_t step, const optim::Step& update);
  // Without autograd's help, as where backward is in two parts: these gradients are complete.
  bool has(const torch::Tensor& parameter) const {
    return bucket_of_.contains(parameter.unsafeGetTensorImpl());
  }
  void complete(const torch::Tensor& parameter);
  void complete_all_but(const DeferredGradients& put_off);
  void finish_reduction();  // the gradients of all ranks are here
  // Where UpdateOptions::needs_norm: the squares of the gradients, such that the sum over all ranks
  // counts each once, and what then becomes of the update: it is scaled, or left out.
  optim::SquareSum squares() const;
  void decide(std::optional<double> factor) { factor_ = factor; }
  void finish_update();  // all parameters have their new values, on all ranks

  // Seconds of the step under way that updates took after backward: not hidden behind it.
  double exposed_update_seconds() const { return exposed_update_seconds_; }
  // And in which it was waited for: reduction and update.
  double exposed_seconds() const { return exposed_seconds_; }
  // Of each parameter, in the order of the flat ones: whether backward gave it a gradient.
  const std::vector<int64_t>& reached() const { return reached_; }
  void forget_reached() { std::ranges::fill(reached_, 0); }
  // When each bucket of the step was reduced and, unless that was put off, updated.
  struct BucketTimes {
    double begin, end;
    int64_t bytes;
  };
  std::vector<BucketTimes> bucket_times() const;
  size_t state_bytes() const;  // of the optimizer, on this rank
  // The state itself: for each bucket, one after the other, each of its arrays.
  std::vector<torch::Tensor> state() const;
  void set_state(const std::vector<torch::Tensor>& state);
  // The same by parameter: of the array `state`, the elements from `begin` on of a slot's. Those
  // that this rank holds, or those that it writes where every element is to be written once.
  struct StateRun {
    size_t slot = 0;
    int state = 0;
    int64_t begin = 0;
    std::span<std::byte> bytes = {};
  };
  enum class Runs { held, written };
  std::vector<StateRun> state_runs(Runs which);
  int buckets() const { return static_cast<int>(buckets_.size()); }

 private:
  struct Bucket;
  struct Hook;
  struct Watched {
    c10::intrusive_ptr<torch::autograd::Node> accumulator;  // of a parameter's gradient
    uintptr_t hook;
  };

  void add_bucket(size_t first_slot, size_t parameters, size_t begin, size_t end);
  void gradient_is_complete(int bucket);
  void note_reached(size_t slot, const torch::autograd::variable_list& gradients);
  void reduce(Bucket& bucket);
  void update(Bucket& bucket);
  void sum_over_parts(comm::Buffer buffer);
  template <class Action>
  void for_states(const Action& action) const;
  comm::Range written_of(size_t count) const;
  comm::Call call(std::string_view operation) const;

  FlatParameters& parameters_;
  comm::Communicator& communicator_;
  UpdateOptions options_;
  const Division division_;
  const int parts_, part_;              // of every bucket, this rank updates part_ of parts_
  const bool put_off_;                  // the update, until the norm of all gradients is known
  const bool fused_;                    // the update adds the gradients up
  std::optional<double> factor_ = 1.0;  // of an update that was put off
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::vector<Watched> watched_;
  std::unordered_map<const void*, int> bucket_of_;  // by a parameter's identity
  int64_t step_ = -1;
  optim::Step update_;
  bool started_ = false;
  std::vector<int64_t> reached_;
  std::atomic<bool> backward_is_over_ = false;
  double exposed_update_seconds_ = 0, exposed_seconds_ = 0;
  std::unique_ptr<comm::AsyncReducer> reducer_;
};

}  // namespace renkei::run
