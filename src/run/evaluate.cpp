#include "run/evaluate.h"

#include <array>

#include "run/batch_loader.h"
#include "run/loss.h"

namespace renkei::run {

Evaluation evaluate(model::Network& network, model::Objective objective,
                    const data::Dataset& dataset, comm::Communicator& communicator,
                    int64_t samples_at_once, data::LoaderOptions loader_options,
                    const comm::Call& call) {
  const torch::NoGradGuard no_grad;
  const comm::Transport& transport = communicator.transport();
  network.eval();
  loader_options.epochs = 1;
  loader_options.peers = nullptr;  // they keep the samples of training
  BatchLoader loader(dataset,
                     data::Sampler({.count = dataset.count(),
                                    .global_batch = samples_at_once * transport.size(),
                                    .ranks = transport.size(),
                                    .shuffle = false}),
                     loader_options);
  const bool labels = dataset.classes() > 0 && objective != model::Objective::own_loss;
  double loss = 0;
  int64_t correct = 0;
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    const Batch batch = loader.load(0, step, 0, 1);
    if (batch.samples == 0) continue;
    if (objective == model::Objective::own_loss) {
      loss += network.own_loss(batch.input, batch.target).item<double>();
      continue;
    }
    const torch::Tensor output = network.forward(batch.input);
    loss += summed_loss(objective, output, batch.target).item<double>();
    if (labels) correct += output.argmax(1).eq(batch.target).sum().item<int64_t>();
  }
  network.train();

  std::array<double, 2> sums{loss, static_cast<double>(correct)};
  communicator.allreduce(comm::Buffer(std::span<double>(sums)), comm::Reduction::sum, call);
  const auto samples = static_cast<double>(dataset.count());
  Evaluation result{.loss = sums[0] / samples, .samples = dataset.count()};
  if (labels) result.accuracy = sums[1] / samples;
  return result;
}

}  // namespace renkei::run
