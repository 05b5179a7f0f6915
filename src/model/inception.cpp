#include "model/inception.h"

#include "base/error.h"
#include "model/initial_values.h"
#include "model/layers.h"

namespace renkei::model {
namespace {

using Block = InceptionBlock;
using Branches = std::vector<Block::Branch>;

constexpr Block::Kernel k1x1{1, 1}, k3x3{3, 3}, k5x5{5, 5};
constexpr Block::Kernel k1x3{1, 3}, k3x1{3, 1}, k1x7{1, 7}, k7x1{7, 1};

// The five kinds of block, as the paper's figures 5 (A), 10 (B, D), 6 (C) and 7 (E) draw them.
Branches block_a(int64_t pool_channels) {
  return {{.chain = {{"branch1x1", 64, k1x1}}},
          {.chain = {{"branch5x5_1", 48, k1x1}, {"branch5x5_2", 64, k5x5}}},
          {.chain = {{"branch3x3dbl_1", 64, k1x1},
                     {"branch3x3dbl_2", 96, k3x3},
                     {"branch3x3dbl_3", 96, k3x3}}},
          {.chain = {{"branch_pool", pool_channels, k1x1}}, .pool = Block::Pool::average}};
}

Branches block_b() {
  return {{.chain = {{"branch3x3", 384, k3x3, 2}}},
          {.chain = {{"branch3x3dbl_1", 64, k1x1},
                     {"branch3x3dbl_2", 96, k3x3},
                     {"branch3x3dbl_3", 96, k3x3, 2}}},
          {.chain = {}, .pool = Block::Pool::max_stride_2}};
}

Branches block_c(int64_t inner) {
  return {{.chain = {{"branch1x1", 192, k1x1}}},
          {.chain = {{"branch7x7_1", inner, k1x1},
                     {"branch7x7_2", inner, k1x7},
                     {"branch7x7_3", 192, k7x1}}},
          {.chain = {{"branch7x7dbl_1", inner, k1x1},
                     {"branch7x7dbl_2", inner, k7x1},
                     {"branch7x7dbl_3", inner, k1x7},
                     {"branch7x7dbl_4", inner, k7x1},
                     {"branch7x7dbl_5", 192, k1x7}}},
          {.chain = {{"branch_pool", 192, k1x1}}, .pool = Block::Pool::average}};
}

Branches block_d() {
  return {{.chain = {{"branch3x3_1", 192, k1x1}, {"branch3x3_2", 320, k3x3, 2}}},
          {.chain = {{"branch7x7x3_1", 192, k1x1},
                     {"branch7x7x3_2", 192, k1x7},
                     {"branch7x7x3_3", 192, k7x1},
                     {"branch7x7x3_4", 192, k3x3, 2}}},
          {.chain = {}, .pool = Block::Pool::max_stride_2}};
}

Branches block_e() {
  return {{.chain = {{"branch1x1", 320, k1x1}}},
          {.chain = {{"branch3x3_1", 384, k1x1}},
           .ends = {{"branch3x3_2a", 384, k1x3}, {"branch3x3_2b", 384, k3x1}}},
          {.chain = {{"branch3x3dbl_1", 448, k1x1}, {"branch3x3dbl_2", 384, k3x3}},
           .ends = {{"branch3x3dbl_3a", 384, k1x3}, {"branch3x3dbl_3b", 384, k3x1}}},
          {.chain = {{"branch_pool", 192, k1x1}}, .pool = Block::Pool::average}};
}

torch::Tensor pooled(const torch::Tensor& input, Block::Pool pool) {
  switch (pool) {
    case Block::Pool::average:
      return layers::avg_pool(input, {.kernel = 3, .stride = 1, .padding = 1});
    case Block::Pool::max_stride_2:
      return layers::max_pool(input, {.kernel = 3, .stride = 2});
    case Block::Pool::none:
      break;
  }
  return input;
}

}  // namespace

ConvUnit::ConvUnit(const torch::nn::Conv2dOptions& options)
    : conv_(register_module("conv",
                            torch::nn::Conv2d(torch::nn::Conv2dOptions(options).bias(false)))),
      bn_(register_module("bn",
                          torch::nn::BatchNorm2d(
                              torch::nn::BatchNorm2dOptions(options.out_channels()).eps(0.001)))) {}

torch::Tensor ConvUnit::forward(const torch::Tensor& input) {
  return layers::conv_bn_relu(input, conv_, bn_);
}

InceptionBlock::InceptionBlock(int64_t in, const std::vector<Branch>& branches) {
  for (const Branch& branch : branches) {
    MadeBranch made{branch.pool, {}, {}};
    int64_t channels = in;
    for (const Conv& conv : branch.chain) channels = add(made.chain, conv, channels);
    for (const Conv& conv : branch.ends) out_ += add(made.ends, conv, channels);
    if (branch.ends.empty()) out_ += channels;
    branches_.push_back(std::move(made));
  }
}

int64_t InceptionBlock::add(Units& units, const Conv& conv, int64_t in) {
  torch::nn::Conv2dOptions options(in, conv.out, {conv.kernel.height, conv.kernel.width});
  options.stride(conv.stride);
  if (conv.stride == 1)
    options.padding(torch::ExpandingArray<2>({conv.kernel.height / 2, conv.kernel.width / 2}));
  units.push_back(register_module(conv.name, std::make_shared<ConvUnit>(options)));
  return conv.out;
}

torch::Tensor InceptionBlock::forward(const torch::Tensor& input) {
  std::vector<torch::Tensor> outputs;
  for (const MadeBranch& branch : branches_) {
    torch::Tensor value = pooled(input, branch.pool);
    for (const auto& unit : branch.chain) value = unit->forward(value);
    for (const auto& unit : branch.ends) outputs.push_back(unit->forward(value));
    if (branch.ends.empty()) outputs.push_back(value);
  }
  return layers::concat(outputs);
}

InceptionV3::InceptionV3(const ImageOptions& options)
    : ImageNetwork(options), dropout_(options.dropout.value_or(0.5)) {
  if (options.auxiliary && options.image_size < 299)
    throw Error(
        ErrorCode::usage,
        fmt::format("the auxiliary head of inception_v3 takes images of at least 299 pixels "
                    "a side, but model.image_size is {}",
                    options.image_size),
        "leave model.image_size at auto, or model.auxiliary at false");
  using Conv = torch::nn::Conv2dOptions;
  const auto stem = [&](const char* name, const Conv& conv) {
    stem_.push_back(register_module(name, std::make_shared<ConvUnit>(conv)));
  };
  stem("Conv2d_1a_3x3", Conv(3, 32, 3).stride(2));
  stem("Conv2d_2a_3x3", Conv(32, 32, 3));
  stem("Conv2d_2b_3x3", Conv(32, 64, 3).padding(1));
  stem("Conv2d_3b_1x1", Conv(64, 80, 1));
  stem("Conv2d_4a_3x3", Conv(80, 192, 3));

  int64_t channels = 192;
  const auto block = [&](const char* name, const Branches& branches) {
    blocks_.push_back(register_module(name, std::make_shared<Block>(channels, branches)));
    channels = blocks_.back()->out();
  };
  block("Mixed_5b", block_a(32));
  block("Mixed_5c", block_a(64));
  block("Mixed_5d", block_a(64));
  block("Mixed_6a", block_b());
  block("Mixed_6b", block_c(128));
  block("Mixed_6c", block_c(160));
  block("Mixed_6d", block_c(160));
  block("Mixed_6e", block_c(192));
  if (options.auxiliary) {
    auto head = register_module("AuxLogits", std::make_shared<torch::nn::Module>());
    auxiliary_units_ = {
        head->register_module("conv0", std::make_shared<ConvUnit>(Conv(channels, 128, 1))),
        head->register_module("conv1", std::make_shared<ConvUnit>(Conv(128, 768, 5)))};
    auxiliary_linear_ = head->register_module("fc", torch::nn::Linear(768, options.classes));
  }
  block("Mixed_7a", block_d());
  block("Mixed_7b", block_e());
  block("Mixed_7c", block_e());
  linear_ = register_module("fc", torch::nn::Linear(channels, options.classes));
  draw_initial_values();
}

void InceptionV3::draw_initial_values() {
  const auto* auxiliary = auxiliary_linear_.is_empty() ? nullptr : auxiliary_linear_.get();
  for (const auto& part : modules(/*include_self=*/false)) {
    if (auto* conv = part->as<torch::nn::Conv2d>()) start_from_truncated_normal(conv->weight, 0.1);
    if (auto* linear = part->as<torch::nn::Linear>())
      start_from_truncated_normal(linear->weight, linear == auxiliary ? 0.001 : 0.1);
  }
}

Network::Outputs InceptionV3::forward_all(torch::Tensor input) {
  const layers::Window pool{.kernel = 3, .stride = 2};
  for (size_t i = 0; i < stem_.size(); ++i) {
    input = stem_[i]->forward(input);
    if (i == 2 || i == 4) input = layers::max_pool(input, pool);
  }
  Outputs outputs;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    input = blocks_[i]->forward(input);
    const bool before_7a = i + 4 == blocks_.size();
    if (before_7a && is_training() && !auxiliary_units_.empty()) {
      outputs.auxiliary = {auxiliary_head(input)};
      outputs.auxiliary_weight = 0.4;
    }
  }
  input = torch::dropout(layers::global_avg_pool(input), dropout_, is_training());
  outputs.main = layers::linear(input, linear_);
  return outputs;
}

torch::Tensor InceptionV3::auxiliary_head(torch::Tensor input) {
  input = layers::avg_pool(input, {.kernel = 5, .stride = 3});
  for (const auto& unit : auxiliary_units_) input = unit->forward(input);
  return layers::linear(layers::global_avg_pool(input), auxiliary_linear_);
}

std::vector<NetworkDescription> inception_networks() {
  return {describe_image_network(
      "inception_v3", "Inception-v3, its auxiliary head optional",
      {.image_size = 299, .least_image_size = 75},
      [](const ImageOptions& options) { return std::make_shared<InceptionV3>(options); })};
}

}  // namespace renkei::model
