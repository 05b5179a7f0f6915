// Graphs of networks by their published dimensions, without any weights: to plan models that do not
// fit this machine, and for tests. They have FLOPs and bytes; estimate_seconds adds the times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/philox.h"
#include "graph/graph.h"

namespace renkei::graph {

// An encoder as BERT's (Devlin et al., 2018): embeddings, `layers` times attention and a
// feed-forward network of four times the width, and a projection to the vocabulary with a loss.
struct TransformerOptions {
  int64_t layers = 24;
  int64_t hidden = 1024;
  int64_t sequence = 512;
  int64_t heads = 0;  // 0: one for every 64 of `hidden`
  int64_t vocabulary = 30522;
  bool tied = true;  // the projection uses the weights of the embedding
  int64_t batch = 1;
};
Graph transformer(const TransformerOptions& options);

// A residual network of bottleneck blocks (He et al., 2015); {3, 4, 6, 3} is ResNet-50,
// {3, 8, 36, 3} ResNet-152. `widen` multiplies all channels.
struct ResnetOptions {
  std::vector<int> blocks = {3, 4, 6, 3};
  int64_t widen = 1;
  int64_t image_pixels = 224;
  int64_t classes = 1000;
  int64_t batch = 1;
};
Graph resnet(const ResnetOptions& options);

// AlexNet, as torchvision has it (Krizhevsky, 2014).
Graph alexnet(int64_t batch);

// VGG with 16 layers (Simonyan and Zisserman, 2014): a chain with most parameters at its end.
Graph vgg16(int64_t batch);

// Inception-v3 (Szegedy et al., 2015) without its auxiliary classifier: branches that join.
Graph inception_v3(int64_t batch);

// The MLP of RaNNC's tutorial: `layers` square layers with ReLU.
Graph mlp(int64_t hidden, int64_t layers, int64_t batch);

// Small graphs with random costs, for tests: chains, forks and skips in random proportion.
struct RandomGraphOptions {
  int ops = 8;
  double fork_share = 0.2;       // how often an op begins a new branch
  double skip_share = 0.2;       // how often an op also takes an older value
  double share_parameter = 0.1;  // how often an op uses an earlier op's parameter
};
Graph random_graph(const RandomGraphOptions& options, Random& random);

// A network by name and "key=value" dimensions: bert (layers, hidden, sequence, …), resnet50,
// resnet101, resnet152 (widen, image), alexnet, inception_v3, vgg16, mlp (layers, hidden). Usage
// Error for others.
struct NamedDimension {
  std::string key;
  int64_t value;
};
Graph named_network(const std::string& name, const std::vector<NamedDimension>& dimensions,
                    int64_t batch);
std::vector<std::string> network_names();

}  // namespace renkei::graph
