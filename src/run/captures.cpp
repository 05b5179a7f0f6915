#include "run/captures.h"

#include "run/loss.h"

namespace renkei::run {
namespace {

struct Blank {
  torch::Tensor input, target;
};

// A batch in the shape of the data.
Blank blank_batch(const data::Dataset& data, int64_t samples) {
  std::vector<int64_t> shape = data.sample_shape();
  shape.insert(shape.begin(), samples);
  return {torch::zeros(shape), data.classes() > 0 ? torch::zeros({samples}, torch::kInt64)
                                                  : torch::zeros({samples, data.target_size()})};
}

}  // namespace

model::Capture capture_training(model::Network& network, model::Objective objective,
                                const data::Dataset& data, int64_t samples) {
  const Blank batch = blank_batch(data, samples);
  return model::capture(
      network,
      [&](const torch::Tensor& input, const torch::Tensor& target) {
        return std::vector<torch::Tensor>{summed_loss(objective, network, input, target)};
      },
      batch.input, batch.target, "the network");
}

model::Capture capture_evaluation(model::Network& network, model::Objective objective,
                                  const data::Dataset& data, int64_t samples) {
  const Blank batch = blank_batch(data, samples);
  network.eval();
  model::Capture captured = model::capture(
      network,
      [&](const torch::Tensor& input, const torch::Tensor& target) -> std::vector<torch::Tensor> {
        if (objective == model::Objective::own_loss) return {network.own_loss(input, target)};
        const torch::Tensor output = network.forward(input);
        std::vector<torch::Tensor> results{summed_loss(objective, output, target)};
        if (data.classes() > 0) results.push_back(output.argmax(1).eq(target).sum());
        return results;
      },
      batch.input, batch.target, "the network");
  network.train();
  return captured;
}

}  // namespace renkei::run
