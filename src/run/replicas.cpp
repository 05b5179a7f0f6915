#include "run/replicas.h"

#include <numeric>

#include "comm/free_groups.h"
#include "comm/transport/tags.h"

namespace renkei::run {

Replicas::Replicas(std::vector<torch::Tensor> parameters, comm::Communicator& world,
                   const Options& options)
    : options_(options), parameters_(std::move(parameters)) {
  const int group = comm::find_free_groups(
      world, 1,
      {.operation = "setup of a data parallel model", .timeout_seconds = options.timeout_seconds});
  std::vector<int> ranks(static_cast<size_t>(world.transport().size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  shared_ = std::make_unique<SharedParameters>(
      parameters_, world, context_.sink,
      SharedParameters::Options{.ranks = ranks,
                                .channel = comm::channels::group(group),
                                .own_values = true,
                                .update = {.bucket_bytes = options.bucket_bytes,
                                           .timeout_seconds = options.timeout_seconds,
                                           .only_reduce = comm::Reduction::mean}});
  for (const torch::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

Replicas::~Replicas() = default;

void Replicas::begin_backward() {
  had_gradient_.clear();
  for (const torch::Tensor& parameter : parameters_)
    had_gradient_.push_back(parameter.grad().defined());
  context_.sink.begin_step();
  if (!shared_->flat()) return;
  shared_->flat()->attach_gradients();
  shared_->updater()->start(step_++, {});
}

void Replicas::finish_backward() {
  if (!shared_->updater()) return;
  shared_->updater()->finish_reduction();
  std::vector<int64_t> reached = shared_->updater()->reached();
  shared_->communicator().allreduce(comm::Buffer(std::span(reached)), comm::Reduction::max,
                                    {.operation = "exchange of the parameters in use",
                                     .step = step_,
                                     .timeout_seconds = options_.timeout_seconds});
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (reached[i] == 0 && !had_gradient_[i]) parameters_[i].mutable_grad().reset();
}

void Replicas::close() {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) parameter.mutable_grad() = parameter.grad().clone();
    parameter.set_data(parameter.detach().clone());
  }
  shared_->close();
}

}  // namespace renkei::run
