#include <fmt/format.h>

#include <algorithm>

#include "graph/builder.h"
#include "graph/synthetic.h"

namespace renkei::graph {
namespace {

double real(int64_t number) {
  return static_cast<double>(number);
}

ValueIndex layer_norm(Builder& builder, const std::string& name, ValueIndex from, int64_t rows,
                      int64_t width) {
  const ParameterIndex weight = builder.parameter(name + ".weight", width);
  const ParameterIndex bias = builder.parameter(name + ".bias", width);
  return builder.op({.name = name,
                     .kind = "layer_norm",
                     .inputs = {from},
                     .parameters = {weight, bias},
                     .elements = rows * width,
                     .flops = 8 * real(rows * width),
                     .saves = {from}});
}

ValueIndex transformer_layer(Builder& builder, const std::string& name, ValueIndex x,
                             const TransformerOptions& o, int64_t heads) {
  const int64_t rows = o.sequence, wide = 4 * o.hidden, scores_size = heads * rows * rows;
  const double product = 2 * real(rows) * real(rows) * real(o.hidden);
  const ValueIndex q = builder.linear(name + ".query", x, rows, o.hidden, o.hidden);
  const ValueIndex k = builder.linear(name + ".key", x, rows, o.hidden, o.hidden);
  const ValueIndex v = builder.linear(name + ".value", x, rows, o.hidden, o.hidden);
  const ValueIndex scores = builder.op({.name = name + ".scores",
                                        .kind = "matmul",
                                        .inputs = {q, k},
                                        .elements = scores_size,
                                        .flops = product,
                                        .saves = {q, k}});
  const ValueIndex shares =
      builder.pointwise(name + ".softmax", "softmax", {scores}, scores_size, true);
  const ValueIndex context = builder.op({.name = name + ".context",
                                         .kind = "matmul",
                                         .inputs = {shares, v},
                                         .elements = rows * o.hidden,
                                         .flops = product,
                                         .saves = {shares, v}});
  const ValueIndex mixed = builder.linear(name + ".output", context, rows, o.hidden, o.hidden);
  ValueIndex sum = builder.pointwise(name + ".add1", "add", {x, mixed}, rows * o.hidden, false);
  const ValueIndex middle = layer_norm(builder, name + ".norm1", sum, rows, o.hidden);
  const ValueIndex up = builder.linear(name + ".up", middle, rows, o.hidden, wide);
  const ValueIndex active = builder.op({.name = name + ".gelu",
                                        .kind = "gelu",
                                        .inputs = {up},
                                        .elements = rows * wide,
                                        .flops = 8 * real(rows * wide),
                                        .saves = {up}});
  const ValueIndex down = builder.linear(name + ".down", active, rows, wide, o.hidden);
  sum = builder.pointwise(name + ".add2", "add", {middle, down}, rows * o.hidden, false);
  return layer_norm(builder, name + ".norm2", sum, rows, o.hidden);
}

}  // namespace

Graph transformer(const TransformerOptions& o) {
  const int64_t rows = o.sequence;
  const int64_t heads = o.heads > 0 ? o.heads : std::max<int64_t>(1, o.hidden / 64);
  Builder builder(fmt::format("transformer of {} layers, hidden {}", o.layers, o.hidden), o.batch);
  const ValueIndex tokens = builder.input("tokens", rows);
  const ValueIndex target = builder.input("target", rows);
  const ParameterIndex words = builder.parameter("embedding.weight", o.vocabulary * o.hidden);
  const ParameterIndex places = builder.parameter("position.weight", rows * o.hidden);
  ValueIndex x = builder.op({.name = "embedding",
                             .kind = "embedding",
                             .inputs = {tokens},
                             .parameters = {words, places},
                             .elements = rows * o.hidden,
                             .flops = real(rows * o.hidden),
                             .saves = {tokens}});
  x = layer_norm(builder, "embedding.norm", x, rows, o.hidden);
  for (int64_t layer = 0; layer < o.layers; ++layer)
    x = transformer_layer(builder, fmt::format("layer{}", layer), x, o, heads);
  x = builder.linear("head.dense", x, rows, o.hidden, o.hidden);
  x = layer_norm(builder, "head.norm", x, rows, o.hidden);
  const ParameterIndex projection =
      o.tied ? words : builder.parameter("head.projection", o.vocabulary * o.hidden);
  x = builder.op({.name = "head.projection",
                  .kind = "linear",
                  .inputs = {x},
                  .parameters = {projection},
                  .elements = rows * o.vocabulary,
                  .flops = 2 * real(rows) * real(o.hidden) * real(o.vocabulary),
                  .saves = {x}});
  return builder.finish(builder.cross_entropy(x, target, rows * o.vocabulary));
}

}  // namespace renkei::graph
