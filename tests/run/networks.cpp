#include "tests/run/networks.h"

#include <map>

#include "data/random_data.h"
#include "data/random_tokens.h"
#include "networks/layers.h"
#include "networks/settings.h"
#include "program/builder.h"

namespace renkei::run {
namespace {

using program::Builder;
using program::ValueId;

ValueId conv3(Builder& builder, ValueId input, const std::string& name, int64_t out) {
  return networks::conv2d(builder, input, name, {.out = out, .kernel = 3, .padding = 1});
}

// Twice the side, by repetition.
ValueId upsampled(Builder& builder, ValueId input) {
  std::vector<program::Size> sizes = builder.sizes(input);
  sizes[2] = sizes[2] * 2;
  sizes[3] = sizes[3] * 2;
  return builder.op("aten.upsample_nearest2d.vec",
                    {{"input", program::Reference{input}},
                     {"output_size", program::None{}},
                     {"scale_factors", program::List{2.0, 2.0}}},
                    {program::DType::f32, sizes});
}

// Down and up again, with skips from each level to the one of its size, dropout in the middle, and
// in-place operations as Python code has them.
networks::Network unet() {
  Builder builder("unet");
  const ValueId input = builder.input("input", program::DType::f32, {builder.batch(), 3, 16, 16});
  const ValueId first = builder.relu_(conv3(builder, input, "down1", 8));
  const ValueId second = builder.relu_(
      conv3(builder, builder.max_pool2d(first, {.kernel = 2, .stride = 2}), "down2", 16));
  ValueId value = networks::batch_norm(
      builder, conv3(builder, builder.max_pool2d(second, {.kernel = 2, .stride = 2}), "middle", 16),
      "norm");
  value = upsampled(builder, builder.dropout(value, 0.3));
  value = builder.relu_(conv3(builder, builder.cat(std::vector{value, second}, 1), "up2", 8));
  value = conv3(builder, builder.cat(std::vector{upsampled(builder, value), first}, 1), "up1", 8);
  value = builder.add_(value, program::Reference{first});  // in place, as a residual
  value = builder.op(
      "aten.mean.dim",
      {{"self", program::Reference{value}}, {"dim", program::List{int64_t{2}, int64_t{3}}}},
      {program::DType::f32, {builder.batch(), 8}});
  builder.output("output", networks::linear(builder, value, "last", {.out = 10}));
  return {.training = builder.finish(), .outputs = 10, .random_sample = {.classes = 10}};
}

networks::Network make_known(const std::string& name,
                             const std::map<std::string, std::string>& values) {
  Settings settings;
  networks::declare_settings(settings);
  settings.set("model.name", name, "test");
  for (const auto& [key, value] : values) settings.set("model." + key, value, "test");
  return networks::make_network(settings);
}

}  // namespace

rewrite::RewriteOptions all_rewrites() {
  return {.block = 16,
          .general_pooling = true,
          .gelu = true,
          .residuals = true,
          .layer_norm = true,
          .dropout = true,
          .cross_entropy = true,
          .embedding = true};
}

Model make_model_for(const networks::Network& network, networks::Objective objective,
                     const data::Dataset& data, uint64_t seed,
                     const rewrite::RewriteOptions& rewrite, const shard::ShardOptions& shard) {
  return make_model({.network = network}, loss_for(objective, data),
                    {.seed = seed, .rewrite = rewrite, .shard = shard});
}

networks::LossOptions loss_for(networks::Objective objective, const data::Dataset& data) {
  const data::Field& target = *data::find_field(data.fields(), data::kTarget);
  return {
      .objective = objective,
      .target = {.label = target.is_label(), .size = target.is_label() ? 0 : target.elements()}};
}

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
    test.objective = networks::Objective::regression;
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
    test.make_network = unet;
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
