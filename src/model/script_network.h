// A network from a TorchScript file, made in Python by torch.jit.script or torch.jit.trace.
//
// The file's parameters and buffers become those of the network, under their names; the code is run
// as it is, operation by operation. Several inputs come as one row per sample, one after another,
// because a data set hands out rows; the network cuts them apart.
#pragma once

#include <torch/script.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/network.h"

namespace renkei::model {

struct ScriptInput {
  std::vector<int64_t> shape;  // of one sample
  int64_t below = 0;           // more than 0: whole numbers from 0 to below - 1, as token ids are
};

// "3x224x224", "128<30522" (128 ids below 30522), several with commas between.
std::vector<ScriptInput> parse_input_shapes(const std::string& text);

struct ScriptOptions {
  std::filesystem::path file;
  std::vector<ScriptInput> inputs;
  int64_t classes = 0;  // of the labels, where the model computes its loss itself; 0: unknown
  double auxiliary_weight = 0.4;
  Objective objective = Objective::classification;
};

class ScriptNetwork : public Network {
 public:
  // Throws an Error that names the construct, if the file holds something that can't be trained.
  explicit ScriptNetwork(const ScriptOptions& options);

  torch::Tensor forward(torch::Tensor input) override { return forward_all(std::move(input)).main; }
  Outputs forward_all(torch::Tensor input) override;
  torch::Tensor own_loss(const torch::Tensor& input, const torch::Tensor& target) override;
  void train(bool on = true) override;

  std::vector<int64_t> input_shape() const override;
  int64_t outputs() const override { return outputs_; }
  RandomSample random_sample() const override;

 private:
  void tie_weights();
  void take_parameters();
  void try_out();
  std::vector<torch::Tensor> split(const torch::Tensor& input) const;
  torch::IValue run(const torch::Tensor& input, const torch::Tensor* target);
  bool takes_target() const;

  ScriptOptions options_;
  torch::jit::Module script_;
  int64_t outputs_ = 1;
  std::vector<int64_t> output_shape_;  // of one sample, as the trial gave it
};

// Reads model.input_shape and so on; `file` is what model.name says.
std::shared_ptr<Network> make_script_network(const Settings& settings,
                                             const std::filesystem::path& file);

}  // namespace renkei::model
