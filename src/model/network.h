#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"

namespace renkei::model {

// What the outputs mean, and so which loss is minimised.
enum class Objective {
  classification,  // logits; cross entropy
  regression,      // values; mean squared error
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

  virtual std::vector<int64_t> input_shape() const = 0;  // of one sample
  virtual int64_t outputs() const = 0;                   // values per sample
};

struct NetworkDescription {
  std::string name;
  std::string summary;
  Objective random_data_objective;  // what `--data random` trains it for
  std::function<std::shared_ptr<Network>(const Settings&)> make;
};
const std::vector<NetworkDescription>& networks();

void declare_settings(Settings& settings);

// Builds the network that model.name asks for. Its initial parameters depend on the seed only.
std::shared_ptr<Network> make_network(const Settings& settings, uint64_t seed);

Objective random_data_objective(const Settings& settings);

int64_t count_parameters(const torch::nn::Module& module);

}  // namespace renkei::model
