#include "graph/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/builder.h"

namespace renkei::graph {
namespace {

double real(int64_t number) {
  return static_cast<double>(number);
}

ValueIndex cross_entropy(Builder& builder, ValueIndex scores, ValueIndex target, int64_t elements) {
  return builder.op({.name = "loss",
                     .kind = "cross_entropy",
                     .inputs = {scores, target},
                     .elements = 1,
                     .flops = 5 * real(elements),
                     .saves = {scores},
                     .scalar = true});
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

// Convolution, batch norm and perhaps ReLU; images are square.
struct ConvOptions {
  std::string name;
  int64_t in, out, kernel, pixels;  // `pixels` of the output's side
  bool norm = true, relu = true;
};

ValueIndex conv(Builder& builder, ValueIndex from, const ConvOptions& o) {
  const int64_t elements = o.out * o.pixels * o.pixels;
  const ParameterIndex weight =
      builder.parameter(o.name + ".weight", o.in * o.out * o.kernel * o.kernel);
  ValueIndex x = builder.op({.name = o.name,
                             .kind = "conv2d",
                             .inputs = {from},
                             .parameters = {weight},
                             .elements = elements,
                             .flops = 2 * real(elements) * real(o.in * o.kernel * o.kernel),
                             .saves = {from}});
  if (o.norm) {
    const std::string name = o.name + ".norm";
    const std::vector<ParameterIndex> parameters{
        builder.parameter(name + ".weight", o.out), builder.parameter(name + ".bias", o.out),
        builder.parameter(name + ".running_mean", o.out, false),
        builder.parameter(name + ".running_var", o.out, false)};
    x = builder.op({.name = name,
                    .kind = "batch_norm",
                    .inputs = {x},
                    .parameters = parameters,
                    .elements = elements,
                    .flops = 4 * real(elements),
                    .saves = {x}});
  }
  return o.relu ? builder.pointwise(o.name + ".relu", "relu", {x}, elements, true) : x;
}

// The second convolution halves the image, as in torchvision's networks.
ValueIndex bottleneck(Builder& builder, const std::string& name, ValueIndex x, int64_t in,
                      int64_t width, int64_t in_pixels, int64_t pixels) {
  const int64_t out = 4 * width, elements = out * pixels * pixels;
  ValueIndex y = conv(builder, x, {name + ".conv1", in, width, 1, in_pixels});
  y = conv(builder, y, {name + ".conv2", width, width, 3, pixels});
  y = conv(builder, y,
           {.name = name + ".conv3",
            .in = width,
            .out = out,
            .kernel = 1,
            .pixels = pixels,
            .relu = false});
  if (in != out)
    x = conv(builder, x,
             {.name = name + ".downsample",
              .in = in,
              .out = out,
              .kernel = 1,
              .pixels = pixels,
              .relu = false});
  y = builder.pointwise(name + ".add", "add", {x, y}, elements, false);
  return builder.pointwise(name + ".relu", "relu", {y}, elements, true);
}

ValueIndex pool(Builder& builder, const std::string& name, ValueIndex from, int64_t elements,
                int64_t window) {
  return builder.op({.name = name,
                     .kind = "pool",
                     .inputs = {from},
                     .elements = elements,
                     .flops = real(elements * window),
                     .saves = {from}});
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
  return builder.finish(cross_entropy(builder, x, target, rows * o.vocabulary));
}

Graph resnet(const ResnetOptions& o) {
  int depth = 2;
  for (const int blocks : o.blocks) depth += 3 * blocks;
  Builder builder(fmt::format("resnet{}", depth), o.batch);
  const ValueIndex image = builder.input("image", 3 * o.image_pixels * o.image_pixels);
  const ValueIndex target = builder.input("target", 1);
  int64_t channels = 64 * o.widen, width = channels;
  int64_t pixels = std::max<int64_t>(1, o.image_pixels / 2);
  ValueIndex x = conv(builder, image, {"stem", 3, channels, 7, pixels});
  pixels = std::max<int64_t>(1, pixels / 2);
  x = pool(builder, "stem.pool", x, channels * pixels * pixels, 9);
  for (size_t group = 0; group < o.blocks.size(); ++group) {
    int64_t in_pixels = pixels;
    if (group > 0) pixels = std::max<int64_t>(1, pixels / 2);
    for (int block = 0; block < o.blocks[group]; ++block) {
      const std::string name = fmt::format("layer{}.{}", group + 1, block);
      x = bottleneck(builder, name, x, channels, width, in_pixels, pixels);
      channels = 4 * width;
      in_pixels = pixels;
    }
    width *= 2;
  }
  x = pool(builder, "average", x, channels, pixels * pixels);
  x = builder.linear("classifier", x, 1, channels, o.classes);
  return builder.finish(cross_entropy(builder, x, target, o.classes));
}

Graph vgg16(int64_t batch) {
  Builder builder("vgg16", batch);
  ValueIndex x = builder.input("image", 3 * 224 * 224);
  const ValueIndex target = builder.input("target", 1);
  int64_t channels = 3, pixels = 224;
  constexpr int kConvolutions[] = {2, 2, 3, 3, 3};
  constexpr int64_t kWidths[] = {64, 128, 256, 512, 512};
  for (int group = 0; group < 5; ++group) {
    for (int i = 0; i < kConvolutions[group]; ++i) {
      x = conv(builder, x,
               {.name = fmt::format("conv{}_{}", group + 1, i + 1),
                .in = channels,
                .out = kWidths[group],
                .kernel = 3,
                .pixels = pixels,
                .norm = false});
      channels = kWidths[group];
    }
    pixels /= 2;
    x = pool(builder, fmt::format("pool{}", group + 1), x, channels * pixels * pixels, 4);
  }
  int64_t in = channels * pixels * pixels;
  for (const int64_t out : {4096, 4096, 1000}) {
    x = builder.linear(fmt::format("classifier{}", in), x, 1, in, out);
    if (out != 1000) x = builder.pointwise("classifier.relu", "relu", {x}, out, true);
    in = out;
  }
  return builder.finish(cross_entropy(builder, x, target, 1000));
}

Graph mlp(int64_t hidden, int64_t layers, int64_t batch) {
  Builder builder(fmt::format("mlp of {} layers, hidden {}", layers, hidden), batch);
  ValueIndex x = builder.input("input", hidden);
  const ValueIndex target = builder.input("target", hidden);
  for (int64_t layer = 0; layer < layers; ++layer) {
    x = builder.linear(fmt::format("linear{}", layer), x, 1, hidden, hidden);
    x = builder.pointwise(fmt::format("relu{}", layer), "relu", {x}, hidden, true);
  }
  return builder.finish(cross_entropy(builder, x, target, hidden));
}

Graph random_graph(const RandomGraphOptions& options, Random& random) {
  constexpr double kMillisecond = 1e-3;
  Graph graph{.name = "random", .batch = 4};
  graph.values.push_back({.id = "x", .bytes = 4 << 10, .gradient = false});
  graph.inputs = {0};
  std::vector<ValueIndex> ends{0};  // of the branches, the newest last
  const auto pick = [&](const auto& list) {
    return list[random.below(static_cast<uint32_t>(list.size()))];
  };
  for (int i = 0; i < options.ops; ++i) {
    const auto output = static_cast<ValueIndex>(graph.values.size());
    graph.values.push_back({.id = fmt::format("v{}", i),
                            .bytes = int64_t{random.below(1 << 20)} + 1,
                            .batch = random.uniform() < 0.9f,
                            .gradient = random.uniform() < 0.9f});
    Op op{.id = fmt::format("op{}", i), .kind = "random"};
    op.inputs = {ends.back()};
    if (output > 1 && random.uniform() < static_cast<float>(options.skip_share))
      op.inputs.push_back(static_cast<ValueIndex>(random.below(static_cast<uint32_t>(output))));
    op.outputs = {output};
    if (random.uniform() < static_cast<float>(options.share_parameter) &&
        !graph.parameters.empty()) {
      op.parameters = {
          static_cast<int>(random.below(static_cast<uint32_t>(graph.parameters.size())))};
    } else {
      op.parameters = {static_cast<ParameterIndex>(graph.parameters.size())};
      graph.parameters.push_back({.id = fmt::format("p{}", i),
                                  .bytes = int64_t{random.below(4 << 20)},
                                  .trainable = random.uniform() < 0.9f});
    }
    op.forward_seconds = kMillisecond * static_cast<double>(random.uniform(0.1f, 4.0f));
    op.backward_seconds = op.forward_seconds * static_cast<double>(random.uniform(0.5f, 3.0f));
    op.forward_fixed_seconds = op.forward_seconds * static_cast<double>(random.uniform(0.0f, 0.3f));
    op.backward_input_share = static_cast<double>(random.uniform());
    op.saved_bytes = random.below(8 << 20);
    op.workspace_bytes = random.below(1 << 18);
    graph.ops.push_back(std::move(op));
    if (random.uniform() < static_cast<float>(options.fork_share))
      ends.push_back(pick(ends));  // the next op grows another branch from an older end
    else
      ends.back() = output;
  }
  graph.outputs = {static_cast<ValueIndex>(graph.values.size()) - 1};
  check_and_sort(graph, "random graph");
  return graph;
}

std::vector<std::string> network_names() {
  return {"bert", "mlp", "resnet50", "resnet101", "resnet152", "vgg16"};
}

Graph named_network(const std::string& name, const std::vector<NamedDimension>& dimensions,
                    int64_t batch) {
  std::map<std::string, int64_t> left;
  for (const NamedDimension& dimension : dimensions) left[dimension.key] = dimension.value;
  const auto take = [&](const std::string& key, int64_t otherwise) {
    const auto found = left.extract(key);
    return found.empty() ? otherwise : found.mapped();
  };
  Graph graph;
  if (name == "bert") {
    graph = transformer({.layers = take("layers", 24),
                         .hidden = take("hidden", 1024),
                         .sequence = take("sequence", 512),
                         .heads = take("heads", 0),
                         .vocabulary = take("vocabulary", 30522),
                         .batch = batch});
  } else if (name == "mlp") {
    graph = mlp(take("hidden", 512), take("layers", 10), batch);
  } else if (name.starts_with("resnet")) {
    ResnetOptions options{
        .widen = take("widen", 1), .image_pixels = take("image", 224), .batch = batch};
    if (name == "resnet101") options.blocks = {3, 4, 23, 3};
    if (name == "resnet152") options.blocks = {3, 8, 36, 3};
    graph = resnet(options);
  } else if (name == "vgg16") {
    graph = vgg16(batch);
  }
  const auto names = network_names();
  if (std::ranges::count(names, name) == 0)
    throw Error(
        ErrorCode::usage, fmt::format("there is no network '{}' to plan", name),
        fmt::format("choose one of {}, or give a graph with --graph", fmt::join(names, ", ")));
  if (!left.empty())
    throw Error(ErrorCode::usage,
                fmt::format("the network '{}' has no dimension '{}'", name, left.begin()->first),
                "docs/plan.md lists the dimensions of each network");
  graph.name = name;
  return graph;
}

}  // namespace renkei::graph
