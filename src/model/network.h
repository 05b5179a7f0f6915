#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace renkei::model {

// What the outputs mean, and so which loss is minimised.
enum class Objective {
  classification,           // scores of the classes in dimension 1; cross entropy
  smoothed_classification,  // the same with labels smoothed by kLabelSmoothing
  regression,               // values; mean squared error
  own_loss,                 // the network returns its loss
};
constexpr double kLabelSmoothing = 0.1;

// What a sample of random data has as its target.
enum class RandomTarget { label, numbers, label_per_position, next_token, masked_token };

// How `--data random` makes samples for a network.
struct RandomSample {
  struct Input {
    int64_t size;
    int64_t below = 0;  // 0: noise; otherwise whole numbers below this
  };
  RandomTarget target = RandomTarget::label;
  std::vector<Input> inputs = {};  // one after another in a row; empty: noise of the input shape
  int64_t classes = 0;             // labels or tokens to choose from
  int64_t target_size = 0;         // numbers or labels in a target, where it is not one label
};

// A network that can be trained: any torch module with one input and one output, both with the
// batch as first dimension.
class Network : public torch::nn::Module {
 public:
  struct Outputs {
    torch::Tensor main;
    std::vector<torch::Tensor> auxiliary;  // their losses count too, in training,
    double auxiliary_weight = 0;           // with this weight
  };

  virtual torch::Tensor forward(torch::Tensor input) = 0;
  virtual Outputs forward_all(torch::Tensor input) { return {forward(std::move(input)), {}}; }
  // The sum of the samples' losses, of a network that computes it itself.
  virtual torch::Tensor own_loss(const torch::Tensor& input, const torch::Tensor& target);

  virtual std::vector<int64_t> input_shape() const = 0;  // of one sample
  virtual int64_t outputs() const = 0;                   // values per sample, or classes
  virtual RandomSample random_sample() const { return {.classes = outputs()}; }
};

struct NetworkDescription {
  std::string name;
  std::string summary;
  std::function<std::shared_ptr<Network>(const Settings&)> make;
};
const std::vector<NetworkDescription>& networks();

void declare_settings(Settings& settings);

// What train.loss says; empty where it is left to the network and the data.
std::optional<Objective> chosen_objective(const Settings& settings);

// Builds the network that model.name asks for. Its initial parameters depend on the seed only, or
// come from model.weights.
std::shared_ptr<Network> make_network(const Settings& settings, uint64_t seed);

// The name to show: of a file, its stem.
std::string model_name(const Settings& settings);

int64_t count_parameters(const torch::nn::Module& module);

}  // namespace renkei::model
