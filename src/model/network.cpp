#include "model/network.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "model/alexnet.h"
#include "model/inception.h"
#include "model/lenet.h"
#include "model/mlp.h"
#include "model/resnet.h"
#include "model/script_network.h"
#include "model/transformer.h"
#include "model/vgg.h"
#include "model/weights.h"

namespace renkei::model {
namespace {

bool is_file(const std::string& name) {
  return name.ends_with(".pt");
}

}  // namespace

const std::vector<NetworkDescription>& networks() {
  static const std::vector<NetworkDescription> list = [] {
    std::vector<NetworkDescription> all;
    for (const auto& family : {mlp_networks(), lenet_networks(), alexnet_networks(), vgg_networks(),
                               resnet_networks(), inception_networks(), transformer_networks()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return list;
}

void declare_settings(Settings& settings) {
  Setting name{.name = "model.name",
               .kind = SettingKind::choice,
               .default_value = "lenet",
               .help = "the network to train, or a TorchScript file",
               .file_ending = ".pt",
               .flag = "--model"};
  for (const NetworkDescription& network : networks()) name.choices.push_back(network.name);
  settings.declare(std::move(name));
  const auto whole_number = [&](const char* setting, const char* value, const char* help,
                                double low, double high) {
    settings.declare({.name = setting,
                      .kind = SettingKind::integer,
                      .default_value = value,
                      .help = help,
                      .low = low,
                      .high = high});
  };
  whole_number("model.hidden", "auto", "width of every layer; by itself mlp 512, gpt and bert 768",
               1, 1 << 20);
  whole_number("model.layers", "auto", "number of layers; by itself mlp 10, gpt and bert 12", 1,
               100'000);
  whole_number("model.heads", "auto", "heads of an attention; by itself one per 64 of the width", 1,
               1 << 16);
  whole_number("model.sequence", "128", "tokens in a sequence (gpt, bert)", 1, 1 << 20);
  whole_number("model.vocabulary", "auto", "token ids; by itself gpt 50257, bert 30522", 2,
               1 << 24);
  settings.declare({.name = "model.tied",
                    .kind = SettingKind::boolean,
                    .default_value = "true",
                    .help = "gpt and bert score tokens with the weights that embed them"});
  whole_number("model.classes", "auto",
               "number of classes of a network for images; by itself 1000, lenet 10", 2, 1'000'000);
  whole_number("model.image_size", "auto",
               "pixels a side of the images; by itself 224, inception_v3 299, lenet 32", 1,
               1 << 14);
  settings.declare(
      {.name = "model.dropout",
       .kind = SettingKind::real,
       .default_value = "auto",
       .help = "share of the values that dropout sets to zero; by itself the network's",
       .low = 0,
       .high = 0.99});
  settings.declare({.name = "model.auxiliary",
                    .kind = SettingKind::boolean,
                    .default_value = "false",
                    .help = "train inception_v3 with its auxiliary head, its loss counted × 0.4"});
  settings.declare({.name = "model.auxiliary_weight",
                    .kind = SettingKind::real,
                    .default_value = "0.4",
                    .help = "how much the further outputs of a TorchScript file count in the loss, "
                            "those that have the shape of the first",
                    .low = 0,
                    .high = 1e6});
  settings.declare({.name = "model.input_shape",
                    .default_value = "auto",
                    .help = "inputs of a TorchScript file: 3x224x224, or 128<30522 for token ids, "
                            "commas between; by itself an image of model.image_size"});
  settings.declare({.name = "model.weights",
                    .default_value = "",
                    .help = "file of named tensors to start from, instead of the seed's values"});
}

std::optional<Objective> chosen_objective(const Settings& settings) {
  const std::string& loss = settings.text("train.loss");
  if (loss == "cross_entropy") return Objective::classification;
  if (loss == "label_smoothing") return Objective::smoothed_classification;
  if (loss == "mse") return Objective::regression;
  if (loss == "model") return Objective::own_loss;
  return std::nullopt;
}

torch::Tensor Network::own_loss(const torch::Tensor&, const torch::Tensor&) {
  throw Error(ErrorCode::usage, "only a TorchScript file can compute its loss itself",
              "leave train.loss at auto");
}

std::shared_ptr<Network> make_network(const Settings& settings, uint64_t seed) {
  torch::manual_seed(seed);
  const std::string& name = settings.text("model.name");
  std::shared_ptr<Network> network;
  if (is_file(name))
    network = make_script_network(settings, name);
  else
    network = std::ranges::find(networks(), name, &NetworkDescription::name)->make(settings);
  if (const std::string& weights = settings.text("model.weights"); !weights.empty())
    load_weights(*network, weights);
  return network;
}

std::string model_name(const Settings& settings) {
  const std::string& name = settings.text("model.name");
  return is_file(name) ? std::filesystem::path(name).stem().string() : name;
}

int64_t count_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace renkei::model
