#include "run/gradient_reducer.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace renkei::run {
namespace {

// A handful of buckets is enough to overlap, and each costs a synchronisation.
size_t automatic_bucket_bytes(size_t total_bytes) {
  return std::clamp<size_t>(total_bytes / 6, size_t{256} << 10, size_t{32} << 20);
}

}  // namespace

struct GradientReducer::Hook : torch::autograd::FunctionPostHook {
  Hook(GradientReducer& reducer, int bucket) : reducer(reducer), bucket(bucket) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    reducer.gradient_is_complete(bucket);
    return outputs;
  }
  GradientReducer& reducer;
  int bucket;
};

GradientReducer::GradientReducer(FlatParameters& parameters, comm::Communicator& communicator,
                                 const ReducerOptions& options)
    : parameters_(parameters) {
  const std::span<float> gradients = parameters.gradient_span();
  const size_t bucket_bytes =
      options.bucket_bytes ? options.bucket_bytes : automatic_bucket_bytes(gradients.size_bytes());

  const auto& slots = parameters.slots();
  size_t end = gradients.size();  // of the bucket that is being filled, in floats
  int parameters_in_bucket = 0;
  for (size_t i = slots.size(); i-- > 0;) {
    auto accumulator = torch::autograd::impl::grad_accumulator(slots[i].parameter);
    const uintptr_t hook = accumulator->add_post_hook(
        std::make_unique<Hook>(*this, static_cast<int>(buckets_.size())));
    watched_.push_back({std::move(accumulator), hook});
    ++parameters_in_bucket;
    const auto begin = static_cast<size_t>(slots[i].offset);
    if ((end - begin) * sizeof(float) < bucket_bytes && i > 0) continue;
    buckets_.push_back({.buffer = comm::Buffer(gradients.subspan(begin, end - begin)),
                        .parameters = parameters_in_bucket,
                        .first_slot = i});
    parameters_in_bucket = 0;
    end = begin;
  }

  reducer_ = std::make_unique<comm::AsyncReducer>(
      static_cast<int>(buckets_.size()),
      [this, &communicator, timeout = options.timeout_seconds](int bucket, int64_t step) {
        communicator.allreduce(
            buckets_[static_cast<size_t>(bucket)].buffer, comm::Reduction::sum,
            {.operation = "allreduce of the gradients", .step = step, .timeout_seconds = timeout});
      },
      options.overlap && communicator.transport().size() > 1);
}

GradientReducer::~GradientReducer() {
  // The network may outlive this object, and its gradients must not call it any more.
  for (Watched& watched : watched_) watched.accumulator->del_post_hook(watched.hook);
}

void GradientReducer::start(int64_t step) {
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
  reducer_->start(step);
  started_ = true;
}

void GradientReducer::finish() {
  // What backward did not reach, as on a rank without samples, has no gradient.
  for (const Bucket& bucket : buckets_)
    for (int i = 0; bucket.missing > 0 && i < bucket.parameters; ++i)
      parameters_.settle(parameters_.slots()[bucket.first_slot + static_cast<size_t>(i)]);
  reducer_->wait();
  started_ = false;
}

void GradientReducer::gradient_is_complete(int bucket) {
  // Backwards of earlier micro-batches only add to the gradients.
  if (started_ && --buckets_[static_cast<size_t>(bucket)].missing == 0) reducer_->submit(bucket);
}

}  // namespace renkei::run
