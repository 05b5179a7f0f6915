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

namespace renkei::run {

class GradientSink {
 public:
  bool direct = true;  // false: nobody gets a place, autograd carries all gradients

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
  // What is there already belongs to the step under way: kernels add to it.
  void keep(const torch::Tensor& parameter);
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

// Gradients of parameters that were put off, in the order in which they came up: the second half of
// a backward pass in two parts.
class DeferredGradients {
 public:
  void add(const torch::Tensor& parameter, std::function<void()> work) {
    work_.push_back({parameter, std::move(work)});
  }
  // Calls `complete(parameter)` when the last work for one is done.
  using Complete = std::function<void(const torch::Tensor& parameter)>;
  void run(const Complete& complete = {});
  bool has(const torch::Tensor& parameter) const;

 private:
  struct Work {
    torch::Tensor parameter;
    std::function<void()> compute;
  };
  std::vector<Work> work_;
};

}  // namespace renkei::run
