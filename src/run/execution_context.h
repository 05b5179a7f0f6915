// What the operations of a rank need to know beside their arguments: whose random numbers they
// draw, where gradients of parameters go, how batch normalisation treats other ranks. One for each
// rank; operations named renkei::… get its address as their last argument, and keep it for
// backward, so it must outlive the steps that use it. Nothing here is per thread: tests run ranks
// as threads, and backward may run in a thread of Torch's.
#pragma once

#include <cstdint>

#include "run/batch_norm_policy.h"
#include "run/gradient_sink.h"
#include "run/tensor_group.h"

namespace renkei::run {

// Which random numbers: those of a step and a micro-batch, whoever computes it.
struct RandomKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t micro_batch = 0;
};

struct ExecutionContext {
  RandomKey random;
  bool draws_as_torch = false;  // not by the key, but from Torch's own generator
  uint64_t operation_seed = 0;  // of the drawing operation that is being called
  GradientSink sink;
  DeferredGradients* deferred = nullptr;  // while set, gradients of parameters are put off
  BatchNormPolicy batch_norm;
  TensorGroup tensor;    // with whom the parts of the program are computed
  bool winograd = true;  // may convolutions use it?
  bool dense = true;     // may dense layers of few samples use our kernels?
  bool products = true;  // may products of matrices be oneDNN's?

  int64_t as_argument() { return static_cast<int64_t>(reinterpret_cast<intptr_t>(this)); }
  // Null: an operation that was called without one, as by tests.
  static ExecutionContext* from_argument(int64_t argument) {
    return reinterpret_cast<ExecutionContext*>(static_cast<intptr_t>(argument));
  }
};

}  // namespace renkei::run
