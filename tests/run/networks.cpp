#include "tests/run/networks.h"

#include <map>

#include "data/random_data.h"
#include "data/random_tokens.h"
#include "model/layers.h"

namespace renkei::run {
namespace {

// Down and up again, with skips from each level to the one of its size, dropout in the middle, and
// in-place operations as Python code has them.
struct UNet : model::Network {
  UNet() {
    for (const auto& [name, in, out] : {std::tuple{"down1", 3, 8},
                                        {"down2", 8, 16},
                                        {"middle", 16, 16},
                                        {"up2", 32, 8},
                                        {"up1", 16, 8}})
      convs.emplace(name,
                    register_module(
                        name, torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1))));
    last = register_module("last", torch::nn::Linear(8, 10));
    norm = register_module("norm", torch::nn::BatchNorm2d(16));
  }
  torch::Tensor forward(torch::Tensor input) override {
    const torch::Tensor first = conv("down1", input).relu_();
    const torch::Tensor second = conv("down2", torch::max_pool2d(first, 2)).relu_();
    torch::Tensor value = norm(conv("middle", torch::max_pool2d(second, 2)));
    value = torch::dropout(value, 0.3, is_training());
    value = torch::upsample_nearest2d(value, c10::optional<at::IntArrayRef>(),
                                      at::ArrayRef<double>({2.0, 2.0}));
    value = conv("up2", torch::cat({value, second}, 1)).relu_();
    value = torch::upsample_nearest2d(value, c10::optional<at::IntArrayRef>(),
                                      at::ArrayRef<double>({2.0, 2.0}));
    value = conv("up1", torch::cat({value, first}, 1));
    value += first;  // in place, as a residual
    return last(value.mean({2, 3}));
  }
  torch::Tensor conv(const std::string& name, const torch::Tensor& input) {
    return convs.at(name)->forward(input);
  }
  std::vector<int64_t> input_shape() const override { return {3, 16, 16}; }
  int64_t outputs() const override { return 10; }

  std::map<std::string, torch::nn::Conv2d> convs;
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear last{nullptr};
};

std::shared_ptr<model::Network> make_known(const std::string& name,
                                           const std::map<std::string, std::string>& values) {
  Settings settings;
  model::declare_settings(settings);
  settings.set("model.name", name, "test");
  for (const auto& [key, value] : values) settings.set("model." + key, value, "test");
  return model::make_network(settings, 1);
}

}  // namespace

TestCase test_case(const std::string& name) {
  TestCase test{.options = {.steps = 5,
                            .learning_rate = {.learning_rate = 0.01},
                            .update = {.optimizer = {.momentum = 0.9}}}};
  const auto images = [&](const std::string& known, int64_t side, int64_t classes) {
    test.make_network = [=] {
      return make_known(
          known, {{"image_size", std::to_string(side)}, {"classes", std::to_string(classes)}});
    };
    test.data = std::make_shared<data::RandomData>(
        data::RandomDataOptions{.sample_shape = {3, side, side}, .count = 30, .classes = classes});
  };
  if (name == "mlp") {
    test.make_network = [] { return make_known("mlp", {{"hidden", "24"}, {"layers", "6"}}); };
    test.data = std::make_shared<data::RandomData>(
        data::RandomDataOptions{.sample_shape = {24}, .count = 30, .target_size = 24});
    test.objective = model::Objective::regression;
  } else if (name == "lenet") {
    images("lenet", 32, 10);
  } else if (name == "resnet18") {
    images("resnet18", 40, 10);
  } else if (name == "vgg11") {
    images("vgg11_bn", 32, 10);
  } else if (name == "inception") {
    images("inception_v3", 75, 10);
  } else if (name == "unet") {
    images("lenet", 16, 10);
    test.make_network = [] {
      torch::manual_seed(1);
      return std::make_shared<UNet>();
    };
  } else {
    test.make_network = [name] {
      return make_known(name, {{"hidden", "16"},
                               {"layers", "3"},
                               {"heads", "4"},
                               {"sequence", "6"},
                               {"vocabulary", "11"},
                               {"dropout", "0.2"}});
    };
    test.data = std::make_shared<data::RandomTokens>(data::RandomTokensOptions{
        .count = 30, .sequence = 6, .vocabulary = 11, .masked = name == "bert"});
    test.tied = true;
  }
  return test;
}

}  // namespace renkei::run
