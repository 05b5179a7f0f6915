// Graphs made by hand, and graphs of networks.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "base/philox.h"
#include "graph/graph.h"
#include "graph/lowering.h"
#include "networks/loss.h"
#include "networks/network.h"
#include "rewrite/rewrite.h"

namespace renkei::test {

// Op i makes value i + 1 from value i, with parameter i.
inline graph::Graph chain_graph(int ops) {
  graph::Graph graph{.name = "chain", .batch = 2};
  graph.values = {{.id = "x", .bytes = 64, .gradient = false}};
  for (int i = 0; i < ops; ++i) {
    graph.values.push_back({.id = fmt::format("v{}", i), .bytes = 64});
    graph.parameters.push_back(
        {.id = fmt::format("p{}", i), .name = fmt::format("{}.weight", i), .bytes = 256});
    graph.ops.push_back({.id = fmt::format("op{}", i),
                         .name = fmt::format("{}", i),
                         .kind = "linear",
                         .inputs = {i},
                         .outputs = {i + 1},
                         .parameters = {i},
                         .forward_seconds = 1e-3,
                         .backward_seconds = 2e-3,
                         .saved_bytes = 64,
                         .deferred_bytes = 64,
                         .flops = 128,
                         .traffic_bytes = 384});
  }
  graph.inputs = {0};
  graph.outputs = {ops};
  check_and_sort(graph, "chain");
  return graph;
}

// Chains, forks and skips in random proportion, with random costs.
struct RandomGraphOptions {
  int ops = 8;
  double fork_share = 0.2;       // how often an op begins a new branch
  double skip_share = 0.2;       // how often an op also takes an older value
  double share_parameter = 0.1;  // how often an op uses an earlier op's parameter
};
inline graph::Graph random_graph(const RandomGraphOptions& options, Random& random) {
  constexpr double kMillisecond = 1e-3;
  graph::Graph graph{.name = "random", .batch = 4};
  graph.values.push_back({.id = "x", .bytes = 4 << 10, .gradient = false});
  graph.inputs = {0};
  std::vector<graph::ValueIndex> ends{0};  // of the branches, the newest last
  const auto pick = [&](const auto& list) {
    return list[random.below(static_cast<uint32_t>(list.size()))];
  };
  for (int i = 0; i < options.ops; ++i) {
    const auto output = static_cast<graph::ValueIndex>(graph.values.size());
    graph.values.push_back({.id = fmt::format("v{}", i),
                            .bytes = int64_t{random.below(1 << 20)} + 1,
                            .batch = random.uniform() < 0.9f,
                            .gradient = random.uniform() < 0.9f});
    graph::Op op{.id = fmt::format("op{}", i), .kind = "random"};
    op.inputs = {ends.back()};
    if (output > 1 && random.uniform() < static_cast<float>(options.skip_share))
      op.inputs.push_back(
          static_cast<graph::ValueIndex>(random.below(static_cast<uint32_t>(output))));
    op.outputs = {output};
    if (random.uniform() < static_cast<float>(options.share_parameter) &&
        !graph.parameters.empty()) {
      op.parameters = {
          static_cast<int>(random.below(static_cast<uint32_t>(graph.parameters.size())))};
    } else {
      op.parameters = {static_cast<graph::ParameterIndex>(graph.parameters.size())};
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
  graph.outputs = {static_cast<graph::ValueIndex>(graph.values.size()) - 1};
  check_and_sort(graph, "random graph");
  return graph;
}

// A built-in network with its loss, rewritten as for training, with counts of work; `sizes` are
// settings of section model.
inline graph::Graph network_graph(const std::string& name,
                                  const std::map<std::string, std::string>& sizes = {}) {
  Settings settings;
  networks::declare_settings(settings);
  settings.set("model.name", name, "test");
  for (const auto& [key, value] : sizes) settings.set("model." + key, value, "test");
  const networks::Network network = networks::make_network(settings);
  const networks::RandomSample& sample = network.random_sample;
  const networks::LossOptions loss{
      .objective = sample.target == networks::RandomTarget::numbers
                       ? networks::Objective::regression
                       : networks::Objective::classification,
      .target = {.label = sample.target == networks::RandomTarget::label,
                 .size = sample.target_size}};
  const program::Program training = networks::training_program(network.training, loss);
  graph::Graph graph = graph::lower(rewrite::rewrite(training, {}).program, 1).graph;
  graph.name = name;
  graph.estimated = true;
  return graph;
}

}  // namespace renkei::test
