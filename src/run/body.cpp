#include "run/body.h"

#include "run/model.h"

namespace renkei::run {

Body::Body(Executor executor, std::vector<Input> inputs, const std::vector<torch::Tensor>& state)
    : inputs_(std::move(inputs)), state_(&state), executor_(std::move(executor)) {}

Body::Body(NetworkFunction function, std::vector<Input> inputs,
           const std::vector<torch::Tensor>& state)
    : inputs_(std::move(inputs)), state_(&state), function_(std::move(function)) {}

std::vector<torch::Tensor> Body::run(std::span<const torch::Tensor> inputs, int64_t samples,
                                     Pass pass, ExecutionContext& context) const {
  if (!executor_) return call(inputs, samples, pass, context);
  std::vector<torch::Tensor> state = tensors_at(*state_, executor_->state());
  if (pass == Pass::again)
    for (torch::Tensor& tensor : state)
      if (!tensor.requires_grad()) tensor = tensor.clone();
  return executor_->run(inputs, state, samples, context);
}

// A function has the tensors themselves, so that they are put back afterwards.
std::vector<torch::Tensor> Body::call(std::span<const torch::Tensor> inputs, int64_t samples,
                                      Pass pass, ExecutionContext& context) const {
  std::vector<std::pair<torch::Tensor, torch::Tensor>> kept;
  if (pass == Pass::again)
    for (const torch::Tensor& tensor : *state_)
      if (!tensor.requires_grad()) kept.emplace_back(tensor, tensor.clone());
  std::vector<torch::Tensor> outputs = function_(inputs, samples, context);
  const torch::NoGradGuard no_grad;
  for (auto& [tensor, before] : kept) tensor.copy_(before);
  return outputs;
}

}  // namespace renkei::run
