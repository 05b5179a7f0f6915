#include "run/sgd.h"

namespace renkei::run {

void Sgd::update(torch::Tensor& values, torch::Tensor& gradients) {
  const torch::NoGradGuard no_grad;
  if (options_.weight_decay != 0) gradients.add_(values, options_.weight_decay);
  if (options_.momentum == 0) {
    values.add_(gradients, -options_.learning_rate);
    return;
  }
  if (!velocity_.defined())
    velocity_ = gradients.clone();
  else
    velocity_.mul_(options_.momentum).add_(gradients);
  values.add_(velocity_, -options_.learning_rate);
}

}  // namespace renkei::run
