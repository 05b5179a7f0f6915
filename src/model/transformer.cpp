#include "model/transformer.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "model/layers.h"

namespace renkei::model {
namespace {

constexpr double kDeviation = 0.02;  // of the initial weights, in GPT-2 and BERT

torch::nn::LayerNorm layer_norm(int64_t hidden) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({hidden}));
}

void draw_initial_values(torch::nn::Module& module) {
  for (const auto& part : module.modules(/*include_self=*/false)) {
    if (auto* linear = part->as<torch::nn::Linear>()) {
      torch::nn::init::normal_(linear->weight, 0, kDeviation);
      if (linear->bias.defined()) torch::nn::init::zeros_(linear->bias);
    }
    if (auto* embedding = part->as<torch::nn::Embedding>())
      torch::nn::init::normal_(embedding->weight, 0, kDeviation);
  }
}

// N × sequence × width, by a layer that takes rows.
torch::Tensor per_position(const torch::Tensor& input, torch::nn::Linear& linear) {
  return layers::linear(input.reshape({-1, input.size(-1)}), linear)
      .view({input.size(0), input.size(1), -1});
}

torch::Tensor embedded(const torch::Tensor& ids, torch::nn::Embedding& tokens,
                       torch::nn::Embedding& positions) {
  return tokens->forward(ids) + positions->weight.narrow(0, 0, ids.size(1));
}

TransformerOptions read_options(const Settings& settings, int64_t vocabulary) {
  TransformerOptions options{
      .hidden = settings.integer_unless_auto("model.hidden").value_or(768),
      .layers = settings.integer_unless_auto("model.layers").value_or(12),
      .sequence = settings.integer("model.sequence"),
      .vocabulary = settings.integer_unless_auto("model.vocabulary").value_or(vocabulary),
      .tied = settings.boolean("model.tied")};
  options.heads = settings.integer_unless_auto("model.heads")
                      .value_or(std::max<int64_t>(1, options.hidden / 64));
  if (!settings.is_auto("model.dropout")) options.dropout = settings.real("model.dropout");
  if (options.hidden % options.heads != 0)
    throw Error(ErrorCode::usage,
                fmt::format("a hidden size of {} can't be divided over {} heads", options.hidden,
                            options.heads),
                "make model.hidden a multiple of model.heads");
  return options;
}

template <class Transformer>
NetworkDescription describe(const char* name, const char* summary, int64_t vocabulary) {
  return {.name = name, .summary = summary, .make = [vocabulary](const Settings& settings) {
            return std::make_shared<Transformer>(read_options(settings, vocabulary));
          }};
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerOptions& options, Kind kind)
    : heads_(options.heads),
      dropout_(options.dropout),
      kind_(kind),
      norm1_(register_module("norm1", layer_norm(options.hidden))),
      norm2_(register_module("norm2", layer_norm(options.hidden))),
      qkv_(register_module("qkv", torch::nn::Linear(options.hidden, 3 * options.hidden))),
      out_(register_module("out", torch::nn::Linear(options.hidden, options.hidden))),
      up_(register_module("up", torch::nn::Linear(options.hidden, 4 * options.hidden))),
      down_(register_module("down", torch::nn::Linear(4 * options.hidden, options.hidden))) {}

torch::Tensor TransformerBlock::forward(torch::Tensor input) {
  if (kind_.pre_norm) {
    input = input + attention(norm1_(input));
    return input + perceptron(norm2_(input));
  }
  input = norm1_(input + attention(input));
  return norm2_(input + perceptron(input));
}

torch::Tensor TransformerBlock::attention(const torch::Tensor& input) {
  const int64_t batch = input.size(0), length = input.size(1), hidden = input.size(2);
  // 3 × batch × heads × length × width of a head
  const torch::Tensor qkv = per_position(input, qkv_)
                                .view({batch, length, 3, heads_, hidden / heads_})
                                .permute({2, 0, 3, 1, 4});
  const double scale = 1 / std::sqrt(static_cast<double>(hidden / heads_));
  torch::Tensor scores = torch::matmul(qkv[0] * scale, qkv[1].transpose(-2, -1));
  if (kind_.causal)
    scores =
        scores + torch::full({length, length}, -std::numeric_limits<float>::infinity()).triu(1);
  const torch::Tensor weights = torch::dropout(torch::softmax(scores, -1), dropout_, is_training());
  const torch::Tensor mixed =
      torch::matmul(weights, qkv[2]).transpose(1, 2).reshape({batch, length, hidden});
  return torch::dropout(per_position(mixed, out_), dropout_, is_training());
}

torch::Tensor TransformerBlock::perceptron(const torch::Tensor& input) {
  return torch::dropout(per_position(torch::gelu(per_position(input, up_)), down_), dropout_,
                        is_training());
}

Gpt::Gpt(const TransformerOptions& options)
    : options_(options),
      tokens_(register_module("tokens", torch::nn::Embedding(options.vocabulary, options.hidden))),
      positions_(
          register_module("positions", torch::nn::Embedding(options.sequence, options.hidden))),
      norm_(nullptr) {
  auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  for (int64_t i = 0; i < options.layers; ++i)
    blocks_.push_back(blocks->register_module(
        std::to_string(i), std::make_shared<TransformerBlock>(
                               options, TransformerBlock::Kind{.causal = true, .pre_norm = true})));
  norm_ = register_module("norm", layer_norm(options.hidden));
  if (!options.tied)
    head_ = register_module(
        "head", torch::nn::Linear(
                    torch::nn::LinearOptions(options.hidden, options.vocabulary).bias(false)));
  draw_initial_values(*this);
}

torch::Tensor Gpt::forward(torch::Tensor input) {
  torch::Tensor value = torch::dropout(embedded(input.to(torch::kInt64), tokens_, positions_),
                                       options_.dropout, is_training());
  for (const auto& block : blocks_) value = block->forward(value);
  value = norm_(value);
  // A tied weight gets gradients from two sides, so autograd adds them up.
  const torch::Tensor scores = head_.is_empty()
                                   ? torch::nn::functional::linear(value, tokens_->weight)
                                   : per_position(value, head_);
  return scores.transpose(1, 2);
}

RandomSample Gpt::random_sample() const {
  return {.target = RandomTarget::next_token,
          .classes = options_.vocabulary,
          .target_size = options_.sequence};
}

Bert::Bert(const TransformerOptions& options)
    : options_(options),
      tokens_(register_module("tokens", torch::nn::Embedding(options.vocabulary, options.hidden))),
      positions_(
          register_module("positions", torch::nn::Embedding(options.sequence, options.hidden))),
      norm_(register_module("norm", layer_norm(options.hidden))),
      dense_(nullptr),
      dense_norm_(nullptr) {
  auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  for (int64_t i = 0; i < options.layers; ++i)
    blocks_.push_back(blocks->register_module(
        std::to_string(i),
        std::make_shared<TransformerBlock>(
            options, TransformerBlock::Kind{.causal = false, .pre_norm = false})));
  dense_ = register_module("dense", torch::nn::Linear(options.hidden, options.hidden));
  dense_norm_ = register_module("dense_norm", layer_norm(options.hidden));
  head_bias_ = register_parameter("head_bias", torch::zeros({options.vocabulary}));
  head_weight_ = tokens_->weight;
  if (!options.tied)
    head_weight_ = register_parameter(
        "head_weight", torch::randn({options.vocabulary, options.hidden}) * kDeviation);
  draw_initial_values(*this);
}

torch::Tensor Bert::forward(torch::Tensor input) {
  torch::Tensor value = norm_(embedded(input.to(torch::kInt64), tokens_, positions_));
  value = torch::dropout(value, options_.dropout, is_training());
  for (const auto& block : blocks_) value = block->forward(value);
  value = dense_norm_(torch::gelu(per_position(value, dense_)));
  return torch::nn::functional::linear(value, head_weight_, head_bias_).transpose(1, 2);
}

RandomSample Bert::random_sample() const {
  return {.target = RandomTarget::masked_token,
          .classes = options_.vocabulary,
          .target_size = options_.sequence};
}

std::vector<NetworkDescription> transformer_networks() {
  return {describe<Gpt>("gpt", "decoder like GPT-2, predicts the next token", 50257),
          describe<Bert>("bert", "encoder like BERT, predicts hidden tokens", 30522)};
}

}  // namespace renkei::model
