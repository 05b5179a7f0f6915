// Runs a network of ours the way torchvision_test.py runs torchvision's, and writes what it gets:
//
//   reference_driver CASE.pt WEIGHTS.pt RESULT.pt [KEY=VALUE …]
//
// CASE.pt holds an input, a target and a number of steps; each KEY=VALUE is a setting. The result
// has the logits in evaluation and in training mode, the gradients of the mean loss, and the state
// after the steps of plain gradient descent. Without weights ("-") it holds the initial state of
// seed 1 alone.
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "model/compute_options.h"
#include "model/network.h"
#include "model/weights.h"
#include "run/device.h"
#include "run/loss.h"

namespace renkei {
namespace {

constexpr double kLearningRate = 0.001;

// Large tensors are compared in every 97th element, which keeps the files small.
torch::Tensor thinned(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().flatten();
  return flat.numel() > 100'000 ? flat.slice(0, 0, flat.numel(), 97) : flat;
}

torch::Tensor mean_loss(model::Network& network, const torch::Tensor& input,
                        const torch::Tensor& target) {
  return run::summed_loss(model::Objective::classification, network, input, target) /
         static_cast<double>(target.size(0));
}

void take_step(model::Network& network) {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : network.parameters())
    parameter.sub_(parameter.grad(), kLearningRate);
}

model::NamedTensors run_case(model::Network& network, const model::NamedTensors& test) {
  const torch::Tensor &input = test.at("input"), &target = test.at("target");
  model::NamedTensors result;
  network.eval();
  {
    const torch::NoGradGuard no_grad;
    result["logits.eval"] = network.forward(input);
  }
  network.train();
  {
    const torch::NoGradGuard no_grad;
    result["logits.train"] = network.forward(input);
  }
  for (int step = 0; step < test.at("steps").item<int>(); ++step) {
    network.zero_grad();
    mean_loss(network, input, target).backward();
    if (step == 0)
      for (const auto& named : network.named_parameters())
        result["gradient." + named.key()] = thinned(named.value().grad()).clone();
    take_step(network);
  }
  return result;
}

int drive(int count, char** words) {
  if (count < 4) throw Error(ErrorCode::usage, "reference_driver CASE WEIGHTS RESULT [KEY=VALUE]");
  run::set_threads(1);
  Settings settings;
  model::declare_settings(settings);
  model::declare_compute_settings(settings);
  for (int i = 4; i < count; ++i) settings.set_assignment(words[i], "command line");
  model::compute_options() = model::compute_options(settings);
  const auto network = model::make_network(settings, 1);
  model::NamedTensors result;
  const std::string weights = words[2];
  if (weights != "-") {
    model::load_weights(*network, weights);
    result = run_case(*network, model::read_tensors(words[1]));
  }
  for (const auto& [name, tensor] : model::named_state(*network))
    result["state." + name] = thinned(tensor);
  model::write_tensors(words[3], result);
  return 0;
}

}  // namespace
}  // namespace renkei

int main(int count, char** words) {
  try {
    return renkei::drive(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
