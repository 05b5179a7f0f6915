#include "model/initial_values.h"

#include <cmath>
#include <numbers>

namespace renkei::model {

void start_convolutions_from_he(torch::nn::Module& module) {
  for (const auto& part : module.modules(/*include_self=*/false))
    if (auto* conv = part->as<torch::nn::Conv2d>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
      if (conv->bias.defined()) torch::nn::init::zeros_(conv->bias);
    }
}

void start_from_truncated_normal(torch::Tensor tensor, double deviation) {
  const torch::NoGradGuard no_grad;
  // The inverse of the distribution function, applied to a uniform number between its values at
  // the two ends.
  const double end = std::erf(2 / deviation / std::numbers::sqrt2);
  tensor.uniform_(-end, end).erfinv_().mul_(deviation * std::numbers::sqrt2).clamp_(-2, 2);
}

}  // namespace renkei::model
