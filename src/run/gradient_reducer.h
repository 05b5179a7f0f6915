// Sums the gradients over the ranks, bucket by bucket, while backward still computes the gradients
// of earlier layers.
//
// Backward goes through the layers from the last to the first, so buckets are cut from the end of
// the flat gradient buffer: bucket 0 holds the last layers. Torch tells when a parameter's gradient
// is complete; when all of a bucket are, it is handed to the reducer's thread. Buckets are views of
// the flat buffer, nothing is copied. Without overlap the same buckets are reduced in the same
// order after backward, so the bits are the same.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "comm/async_reducer.h"
#include "comm/communicator.h"
#include "run/flat_parameters.h"

namespace renkei::run {

struct ReducerOptions {
  size_t bucket_bytes = 0;  // 0: chosen from the size of the network
  bool overlap = true;
  double timeout_seconds = 300;
};

class GradientReducer {
 public:
  GradientReducer(FlatParameters& parameters, comm::Communicator& communicator,
                  const ReducerOptions& options);
  ~GradientReducer();

  // Call before the backward that completes the gradients of a step.
  void start(int64_t step);
  // Returns when all gradients are summed over all ranks.
  void finish();

  int buckets() const { return static_cast<int>(buckets_.size()); }

 private:
  struct Bucket {
    comm::Buffer buffer;
    int parameters = 0;
    int missing = 0;  // gradients that are not complete yet, in this step
    size_t first_slot = 0;
  };
  struct Hook;

  void gradient_is_complete(int bucket);

  FlatParameters& parameters_;
  std::vector<Bucket> buckets_;
  struct Watched {
    std::shared_ptr<torch::autograd::Node> accumulator;  // of a parameter's gradient
    uintptr_t hook;
  };
  std::vector<Watched> watched_;
  bool started_ = false;
  std::unique_ptr<comm::AsyncReducer> reducer_;
};

}  // namespace renkei::run
