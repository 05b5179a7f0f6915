// Where the gradients of parameters belong, for kernels that can write them there themselves.
//
// Autograd hands gradients on as new tensors, and adds them to zeroed memory afterwards: three
// passes over memory for one. A kernel of ours asks here for the place instead, writes there, and
// returns no gradient. The first write of a step replaces what is there, so nothing needs zeroing.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compute/convolution.h"

namespace renkei::model {

class GradientSink {
 public:
  static GradientSink& of_this_thread();

  struct Target {
    float* data;
    compute::Write write;
  };
  // Where to write the gradient of this parameter; empty if nobody asked for it to be written.
  std::optional<Target> claim(const torch::Tensor& parameter);

  bool knows(const torch::Tensor& parameter) const;  // whether claim() would give a place
  void add(const torch::Tensor& parameter, float* gradient);
  void remove(const torch::Tensor& parameter);
  void begin_step() { ++step_; }
  // Whether claim() was called in this step, or in the step before.
  bool written(const torch::Tensor& parameter) const { return wrote_in(parameter, step_); }
  bool written_before(const torch::Tensor& parameter) const {
    return wrote_in(parameter, step_ - 1);
  }

 private:
  struct Place {
    float* gradient;
    int64_t last_step = -1;  // in which it was written
  };
  bool wrote_in(const torch::Tensor& parameter, int64_t step) const;

  int64_t step_ = 0;
  std::unordered_map<const void*, Place> places_;  // by the tensor's identity
};

// While one exists, the gradients of parameters that can wait are put off until run() is called, in
// the order in which they came up: the second half of a backward pass in two parts.
class DeferredGradients {
 public:
  DeferredGradients();
  ~DeferredGradients() { stop(); }
  DeferredGradients(const DeferredGradients&) = delete;
  DeferredGradients& operator=(const DeferredGradients&) = delete;

  void stop();  // from now on gradients are computed at once again
  void run();

  static DeferredGradients* of_this_thread();  // null: none is put off
  void add(std::function<void()> work) { work_.push_back(std::move(work)); }

 private:
  std::vector<std::function<void()>> work_;
};

// Calls compute(pointer, write) so that the gradient of `parameter` ends where it belongs, and
// returns what autograd must be given for it.
template <typename Compute>
torch::Tensor give_gradient(const torch::Tensor& parameter, Compute compute) {
  if (const auto target = GradientSink::of_this_thread().claim(parameter)) {
    compute(target->data, target->write);
    return {};
  }
  torch::Tensor gradient = torch::empty(parameter.sizes());
  compute(gradient.data_ptr<float>(), compute::Write::replace);
  return gradient;
}

// The same for work that may be put off: `compute` must own what it needs.
template <typename Compute>
torch::Tensor give_gradient_later(const torch::Tensor& parameter, Compute compute) {
  DeferredGradients* later = DeferredGradients::of_this_thread();
  if (!later || !GradientSink::of_this_thread().knows(parameter))
    return give_gradient(parameter, std::move(compute));
  later->add([parameter, compute = std::move(compute)] { give_gradient(parameter, compute); });
  return {};
}

}  // namespace renkei::model
