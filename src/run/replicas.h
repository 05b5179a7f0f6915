// A network that every rank computes in its own way, on samples of its own, and whose gradients
// become their mean over the ranks beside backward: data parallel training of a program that calls
// backward and updates the parameters itself.
//
//   Replicas replicas(parameters, communicator, options);    values of rank 0
//   replicas.begin_backward();  … autograd …  replicas.finish_backward();
//
// A backward without these two only adds to the gradients of this rank; the next that has them
// reduces the sum. A gradient that is the same on all ranks stays as it is under a mean, so that
// gradients may add up over several reductions.
#pragma once

#include <memory>
#include <vector>

#include "run/execution_context.h"
#include "run/shared_parameters.h"

namespace renkei::run {

class Replicas {
 public:
  struct Options {
    double timeout_seconds = 300;
    size_t bucket_bytes = 0;  // 0: chosen
  };
  // All ranks together. The parameters are f32 and move to one piece of memory.
  Replicas(std::vector<torch::Tensor> parameters, comm::Communicator& world,
           const Options& options);
  ~Replicas();  // does not communicate

  void begin_backward();
  // A parameter that no rank's backward has reached, and that had no gradient before, has none.
  void finish_backward();
  // All ranks together, at an orderly end; the tensors get memory of their own again.
  void close();

  ExecutionContext& context() { return context_; }

 private:
  ExecutionContext context_;
  Options options_;
  std::vector<torch::Tensor> parameters_;
  std::unique_ptr<SharedParameters> shared_;
  std::vector<bool> had_gradient_;
  int64_t step_ = 0;
};

}  // namespace renkei::run
