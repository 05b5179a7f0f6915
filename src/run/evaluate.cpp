#include "run/evaluate.h"

#include <array>

#include "run/batch_loader.h"
#include "run/executor.h"

namespace renkei::run {

Evaluation evaluate(const BoundProgram& network, ExecutionContext& context,
                    const data::Dataset& dataset, comm::Communicator& communicator,
                    int64_t samples_at_once, data::LoaderOptions loader_options,
                    const comm::Call& call) {
  const torch::NoGradGuard no_grad;
  const comm::Transport& transport = communicator.transport();
  loader_options.epochs = 1;
  loader_options.peers = nullptr;  // they keep the samples of training
  BatchLoader loader(dataset,
                     data::Sampler({.count = dataset.count(),
                                    .global_batch = samples_at_once * transport.size(),
                                    .ranks = transport.size(),
                                    .shuffle = false}),
                     loader_options);
  const Executor executor(network.program, whole(network.program));
  const std::vector<torch::Tensor> state = tensors_at(network.state, executor.state());
  std::array<double, 2> sums{};  // of "loss" and "correct"
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    const Batch batch = loader.load(0, step, 0, 1);
    if (batch.samples == 0) continue;
    const auto results = executor.run(batch_inputs(network.program, executor.inputs(), batch),
                                      state, batch.samples, context);
    for (size_t i = 0; i < results.size(); ++i) sums.at(i) += results[i].item<double>();
  }
  communicator.allreduce(comm::Buffer(std::span<double>(sums)), comm::Reduction::sum, call);
  const auto samples = static_cast<double>(dataset.count());
  Evaluation result{.loss = sums[0] / samples, .samples = dataset.count()};
  if (network.program.outputs.size() > 1) result.accuracy = sums[1] / samples;
  return result;
}

}  // namespace renkei::run
