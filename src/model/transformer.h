// Transformers for sequences of token ids. Both take N × sequence ids and give scores for every
// position, N × vocabulary × sequence.
#pragma once

#include "model/network.h"

namespace renkei::model {

struct TransformerOptions {
  int64_t hidden = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t sequence = 128;
  int64_t vocabulary = 50257;
  double dropout = 0.1;
  bool tied = true;  // the output layer uses the token embedding
};

// Attention and a two-layer perceptron, each added to its input. The normalisation comes before
// each (pre-norm, as in GPT-2) or after the addition (post-norm, as in BERT).
class TransformerBlock : public torch::nn::Module {
 public:
  struct Kind {
    bool causal;  // a position sees only those before it
    bool pre_norm;
  };
  TransformerBlock(const TransformerOptions& options, Kind kind);

  torch::Tensor forward(torch::Tensor input);

 private:
  torch::Tensor attention(const torch::Tensor& input);
  torch::Tensor perceptron(const torch::Tensor& input);

  int64_t heads_;
  double dropout_;
  Kind kind_;
  torch::nn::LayerNorm norm1_, norm2_;
  torch::nn::Linear qkv_, out_, up_, down_;
};

// A decoder in the manner of GPT-2 (Radford et al. 2019): pre-norm, causal, learned positions.
class Gpt : public Network {
 public:
  explicit Gpt(const TransformerOptions& options);

  torch::Tensor forward(torch::Tensor input) override;
  std::vector<int64_t> input_shape() const override { return {options_.sequence}; }
  int64_t outputs() const override { return options_.vocabulary; }
  RandomSample random_sample() const override;

 private:
  TransformerOptions options_;
  torch::nn::Embedding tokens_, positions_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_{nullptr};  // empty when tied
};

// An encoder in the manner of BERT (Devlin et al. 2018, arXiv:1810.04805), post-norm, with its head
// for hidden tokens: a dense layer, GELU, normalisation, scores with a bias.
class Bert : public Network {
 public:
  explicit Bert(const TransformerOptions& options);

  torch::Tensor forward(torch::Tensor input) override;
  std::vector<int64_t> input_shape() const override { return {options_.sequence}; }
  int64_t outputs() const override { return options_.vocabulary; }
  RandomSample random_sample() const override;

 private:
  TransformerOptions options_;
  torch::nn::Embedding tokens_, positions_;
  torch::nn::LayerNorm norm_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  torch::nn::Linear dense_;
  torch::nn::LayerNorm dense_norm_;
  torch::Tensor head_weight_;  // the token embedding when tied
  torch::Tensor head_bias_;
};

std::vector<NetworkDescription> transformer_networks();

}  // namespace renkei::model
