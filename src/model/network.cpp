#include "model/network.h"

#include "base/error.h"
#include "model/lenet.h"
#include "model/mlp.h"

namespace renkei::model {

const std::vector<NetworkDescription>& networks() {
  static const std::vector<NetworkDescription> list{
      {"mlp", "layers × (linear + ReLU), all of width hidden", Objective::regression},
      {"lenet", "small convolutional network for 32 × 32 colour images", Objective::classification},
  };
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
                    .default_value = "10",
                    .help = "number of classes (lenet)",
                    .low = 2,
                    .high = 1'000'000});
}

std::shared_ptr<Network> make_network(const Settings& settings, uint64_t seed) {
  torch::manual_seed(seed);
  const std::string& name = settings.text("model.name");
  if (name == "mlp")
    return std::make_shared<Mlp>(settings.integer("model.hidden"),
                                 settings.integer("model.layers"));
  if (name == "lenet") return std::make_shared<LeNet>(settings.integer("model.classes"));
  throw Error(ErrorCode::bug, fmt::format("the network {} is listed but not built", name));
}

Objective random_data_objective(const Settings& settings) {
  const auto& list = networks();
  const auto found =
      std::ranges::find(list, settings.text("model.name"), &NetworkDescription::name);
  return found->random_data_objective;
}

int64_t count_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace renkei::model
