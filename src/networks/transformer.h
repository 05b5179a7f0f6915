// Transformers for sequences of token ids. Both take N × sequence ids, as numbers of f32, because
// that is what data sets hand out, and give scores for every position, N × vocabulary × sequence.
#pragma once

#include "networks/network.h"

namespace renkei::networks {

struct TransformerOptions {
  int64_t hidden = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t sequence = 128;
  int64_t vocabulary = 50257;
  double dropout = 0.1;
  bool tied = true;  // the output layer uses the token embedding
};

// A decoder in the manner of GPT-2 (Radford et al. 2019): pre-norm, causal, learned positions.
Network make_gpt(const TransformerOptions& options);

// An encoder in the manner of BERT (Devlin et al. 2018, arXiv:1810.04805), post-norm, with its head
// for hidden tokens: a dense layer, GELU, normalisation, scores with a bias.
Network make_bert(const TransformerOptions& options);

std::vector<NetworkDescription> transformer_networks();

}  // namespace renkei::networks
