#include "graph/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/builder.h"

namespace renkei::graph {

Graph mlp(int64_t hidden, int64_t layers, int64_t batch) {
  Builder builder(fmt::format("mlp of {} layers, hidden {}", layers, hidden), batch);
  ValueIndex x = builder.input("input", hidden);
  const ValueIndex target = builder.input("target", hidden);
  for (int64_t layer = 0; layer < layers; ++layer) {
    x = builder.linear(fmt::format("linear{}", layer), x, 1, hidden, hidden);
    x = builder.pointwise(fmt::format("relu{}", layer), "relu", {x}, hidden, true);
  }
  return builder.finish(builder.cross_entropy(x, target, hidden));
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
    op.deferred_bytes = op.saved_bytes = random.below(8 << 20);
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
  return {"alexnet", "bert", "inception_v3", "mlp", "resnet50", "resnet101", "resnet152", "vgg16"};
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
  } else if (name == "inception_v3") {
    graph = inception_v3(batch);
  } else if (name == "alexnet") {
    graph = alexnet(batch);
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
