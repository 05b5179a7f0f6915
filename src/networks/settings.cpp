#include "networks/settings.h"

#include <filesystem>

#include "networks/network.h"

namespace renkei::networks {
namespace {

constexpr const char* kFileEnding = ".pt2";

void declare_sizes(Settings& settings) {
  const auto whole_number = [&](const char* setting, const char* value, const char* help,
                                double low, double high) {
    settings.declare({.name = setting,
                      .kind = SettingKind::integer,
                      .default_value = value,
                      .help = help,
                      .low = low,
                      .high = high});
  };
  whole_number("model.hidden", "auto", "width of every layer; default mlp 512, gpt and bert 768", 1,
               1 << 20);
  whole_number("model.layers", "auto", "number of layers; default mlp 10, gpt and bert 12", 1,
               100'000);
  whole_number("model.heads", "auto", "heads of an attention; default one per 64 of the width", 1,
               1 << 16);
  whole_number("model.sequence", "128", "tokens in a sequence (gpt, bert)", 1, 1 << 20);
  whole_number("model.vocabulary", "auto", "token ids; default gpt 50257, bert 30522", 2, 1 << 24);
  settings.declare({.name = "model.tied",
                    .kind = SettingKind::boolean,
                    .default_value = "true",
                    .help = "gpt and bert score tokens with the weights that embed them"});
  whole_number("model.classes", "auto",
               "number of classes of a network for images; default 1000, lenet 10", 2, 1'000'000);
  whole_number("model.image_size", "auto",
               "pixels a side of the images; default 224, inception_v3 299, lenet 32", 1, 1 << 14);
}

}  // namespace

void declare_settings(Settings& settings) {
  Setting name{.name = "model.name",
               .kind = SettingKind::choice,
               .default_value = "lenet",
               .help = "the network to train, or a .pt2 file",
               .file_ending = kFileEnding,
               .file_hint =
                   "a network is read from a .pt2 file: write one with torch.export.save, "
                   "or with renkei model export; weights go to model.weights",
               .flag = "--model"};
  for (const NetworkDescription& network : networks()) name.choices.push_back(network.name);
  settings.declare(std::move(name));
  declare_sizes(settings);
  settings.declare({.name = "model.dropout",
                    .kind = SettingKind::real,
                    .default_value = "auto",
                    .help = "share of the values that dropout sets to zero; default the network's",
                    .low = 0,
                    .high = 0.99});
  settings.declare({.name = "model.auxiliary",
                    .kind = SettingKind::boolean,
                    .default_value = "false",
                    .help = "train inception_v3 with its auxiliary head, its loss counted × 0.4"});
  settings.declare({.name = "model.auxiliary_weight",
                    .kind = SettingKind::real,
                    .default_value = "0.4",
                    .help = "how much the further outputs of a .pt2 file count in the loss, "
                            "those that have the shape of the first",
                    .low = 0,
                    .high = 1e6});
  settings.declare({.name = "model.input_shape",
                    .default_value = "auto",
                    .help = "inputs of a .pt2 file: 3x224x224, or 128<30522 for token ids, "
                            "commas between; default as the file says"});
  settings.declare({.name = "model.weights",
                    .default_value = "",
                    .help = "file of named tensors to start from, instead of the seed's values"});
  settings.declare({.name = "train.loss",
                    .kind = SettingKind::choice,
                    .default_value = "auto",
                    .help = "what is minimised; default what fits the data; model: what a .pt2 "
                            "file returns; label_smoothing: cross entropy, smoothed by 0.1",
                    .choices = {"auto", "cross_entropy", "label_smoothing", "mse", "model"}});
}

std::optional<Objective> chosen_objective(const Settings& settings) {
  const std::string& loss = settings.text("train.loss");
  if (loss == "cross_entropy") return Objective::classification;
  if (loss == "label_smoothing") return Objective::smoothed_classification;
  if (loss == "mse") return Objective::regression;
  if (loss == "model") return Objective::own_loss;
  return std::nullopt;
}

bool is_model_file(const std::string& name) {
  return name.ends_with(kFileEnding);
}

std::string model_name(const Settings& settings) {
  const std::string& name = settings.text("model.name");
  return is_model_file(name) ? std::filesystem::path(name).stem().string() : name;
}

}  // namespace renkei::networks
