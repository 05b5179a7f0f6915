#include "networks/transformer.h"

#include <algorithm>

#include "base/error.h"
#include "networks/layers.h"

namespace renkei::networks {
namespace {

using program::DType;

constexpr double kDeviation = 0.02;  // of the initial weights, in GPT-2 and BERT

Dense dense(int64_t out, bool bias = true) {
  return {.out = out, .bias = bias, .beginning = {Start::normal, kDeviation}};
}

struct BlockKind {
  bool causal;    // a position sees only those before it
  bool pre_norm;  // normalises before attention and perceptron (GPT-2), or after the sum (BERT)
};

// N × sequence × hidden, cut into heads: N × heads × sequence × hidden / heads.
ValueId heads_of(Builder& builder, ValueId x, const TransformerOptions& options) {
  x = builder.view(
      x, {builder.batch(), options.sequence, options.heads, options.hidden / options.heads});
  return builder.transpose(x, 1, 2);
}

ValueId self_attention(Builder& builder, ValueId x, const TransformerOptions& options,
                       bool causal) {
  // Parts of one product, cut apart along the rows: the gradients are put together in one copy.
  const std::vector<ValueId> parts =
      builder.split(linear(builder, x, "qkv", dense(3 * options.hidden)), options.hidden, 2);
  const ValueId query = heads_of(builder, parts[0], options);
  const ValueId key = heads_of(builder, parts[1], options);
  const ValueId value = heads_of(builder, parts[2], options);
  x = builder.attention(query, key, value, {.dropout = options.dropout, .causal = causal});
  x = builder.reshape(builder.transpose(x, 1, 2),
                      {builder.batch(), options.sequence, options.hidden});
  return builder.dropout(linear(builder, x, "out", dense(options.hidden)), options.dropout);
}

ValueId perceptron(Builder& builder, ValueId x, const TransformerOptions& options) {
  x = builder.gelu(linear(builder, x, "up", dense(4 * options.hidden)));
  return builder.dropout(linear(builder, x, "down", dense(options.hidden)), options.dropout);
}

// Attention and a two-layer perceptron, each added to its input.
ValueId transformer_block(Builder& builder, ValueId x, const TransformerOptions& options,
                          const BlockKind& kind) {
  if (kind.pre_norm) {
    x = builder.add(x,
                    self_attention(builder, layer_norm(builder, x, "norm1"), options, kind.causal));
    return builder.add(x, perceptron(builder, layer_norm(builder, x, "norm2"), options));
  }
  x = builder.add(x, self_attention(builder, x, options, kind.causal));
  x = layer_norm(builder, x, "norm1");
  return layer_norm(builder, builder.add(x, perceptron(builder, x, options)), "norm2");
}

ValueId transformer_blocks(Builder& builder, ValueId x, const TransformerOptions& options,
                           const BlockKind& kind) {
  for (int64_t i = 0; i < options.layers; ++i) {
    const auto scope = builder.scope("blocks." + std::to_string(i));
    x = transformer_block(builder, x, options, kind);
  }
  return x;
}

struct Embedded {
  ValueId value;
  ValueId tokens;  // the weights
};

Embedded embedded(Builder& builder, const TransformerOptions& options) {
  const ValueId ids = builder.input("input", DType::i64, {builder.batch(), options.sequence});
  const ValueId tokens =
      builder.parameter("tokens.weight", {options.vocabulary, options.hidden}, normal(kDeviation));
  const ValueId positions =
      builder.parameter("positions.weight", {options.sequence, options.hidden}, normal(kDeviation));
  return {builder.add(builder.embedding(tokens, ids, "tokens"), positions), tokens};
}

Network finished(Builder& builder, ValueId scores, const TransformerOptions& options,
                 RandomTarget target) {
  builder.output("output", builder.transpose(scores, 1, 2));
  return {.training = builder.finish(),
          .outputs = options.vocabulary,
          .random_sample = {.target = target,
                            .below = {options.vocabulary},
                            .classes = options.vocabulary,
                            .target_size = options.sequence}};
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

}  // namespace

Network make_gpt(const TransformerOptions& options) {
  Builder builder("gpt");
  const Embedded start = embedded(builder, options);
  ValueId x = builder.dropout(start.value, options.dropout);
  x = transformer_blocks(builder, x, options, {.causal = true, .pre_norm = true});
  x = layer_norm(builder, x, "norm");
  if (options.tied) builder.alias(start.tokens, "head.weight");
  x = options.tied ? builder.linear(x, start.tokens, program::kNoValue, "head")
                   : linear(builder, x, "head", dense(options.vocabulary, false));
  return finished(builder, x, options, RandomTarget::next_token);
}

Network make_bert(const TransformerOptions& options) {
  Builder builder("bert");
  const Embedded start = embedded(builder, options);
  ValueId x = builder.dropout(layer_norm(builder, start.value, "norm"), options.dropout);
  x = transformer_blocks(builder, x, options, {.causal = false, .pre_norm = false});
  x = builder.gelu(linear(builder, x, "dense", dense(options.hidden)));
  x = layer_norm(builder, x, "dense_norm");
  ValueId weight = start.tokens;
  if (options.tied)
    builder.alias(weight, "head_weight");
  else
    weight =
        builder.parameter("head_weight", {options.vocabulary, options.hidden}, normal(kDeviation));
  const ValueId bias = builder.parameter("head_bias", {options.vocabulary}, constant(0));
  return finished(builder, builder.linear(x, weight, bias), options, RandomTarget::masked_token);
}

std::vector<NetworkDescription> transformer_networks() {
  return {{.name = "gpt",
           .summary = "decoder like GPT-2, predicts the next token",
           .make = [](const Settings& s) { return make_gpt(read_options(s, 50257)); }},
          {.name = "bert",
           .summary = "encoder like BERT, predicts hidden tokens",
           .make = [](const Settings& s) { return make_bert(read_options(s, 30522)); }}};
}

}  // namespace renkei::networks
