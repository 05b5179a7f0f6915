#include "model/network.h"

#include <algorithm>

#include "model/alexnet.h"
#include "model/inception.h"
#include "model/lenet.h"
#include "model/mlp.h"
#include "model/resnet.h"
#include "model/vgg.h"

namespace renkei::model {
namespace {

const NetworkDescription& chosen_network(const Settings& settings) {
  return *std::ranges::find(networks(), settings.text("model.name"), &NetworkDescription::name);
}

}  // namespace

const std::vector<NetworkDescription>& networks() {
  static const std::vector<NetworkDescription> list = [] {
    std::vector<NetworkDescription> all;
    for (const auto& family : {mlp_networks(), lenet_networks(), alexnet_networks(), vgg_networks(),
                               resnet_networks(), inception_networks()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return list;
}

void declare_settings(Settings& settings) {
  Setting name{.name = "model.name",
               .kind = SettingKind::choice,
               .default_value = "lenet",
               .help = "the network to train",
               .flag = "--model"};
  for (const NetworkDescription& network : networks()) name.choices.push_back(network.name);
  settings.declare(std::move(name));
  settings.declare({.name = "model.hidden",
                    .kind = SettingKind::integer,
                    .default_value = "512",
                    .help = "width of every layer (mlp)",
                    .low = 1,
                    .high = 1 << 20});
  settings.declare({.name = "model.layers",
                    .kind = SettingKind::integer,
                    .default_value = "10",
                    .help = "number of layers (mlp)",
                    .low = 1,
                    .high = 100'000});
  settings.declare({.name = "model.classes",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "number of classes of a network for images; by itself 1000, lenet 10",
                    .low = 2,
                    .high = 1'000'000});
  settings.declare(
      {.name = "model.image_size",
       .kind = SettingKind::integer,
       .default_value = "auto",
       .help = "pixels a side of the images; by itself 224, inception_v3 299, lenet 32",
       .low = 1,
       .high = 1 << 14});
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
}

std::shared_ptr<Network> make_network(const Settings& settings, uint64_t seed) {
  torch::manual_seed(seed);
  return chosen_network(settings).make(settings);
}

Objective random_data_objective(const Settings& settings) {
  return chosen_network(settings).random_data_objective;
}

int64_t count_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace renkei::model
