// From a network to a graph: what it computes is recorded while it does so once, operation by
// operation, and becomes a plain graph that can be planned, cut, and run in parts (program.h).
//
// A network of ours and a TorchScript file are recorded in the same way. Conditions and loops are
// recorded as they went, and sizes as they were: a capture holds for one number of samples. Two
// captures of a network have the same ops.
//
//   constants, and what follows from parameters alone   belong to whoever uses them, and are
//                                                       computed there
//   in-place operations                                 become those that make a new tensor; where
//                                                       that would change the meaning, what shares
//                                                       the memory becomes one op
#pragma once

#include <torch/csrc/jit/ir/ir.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "model/network.h"

namespace renkei::model {

struct Capture {
  std::shared_ptr<torch::jit::Graph> code;
  graph::Graph graph;  // its costs are counts of work, without times
  // Of each op of the graph, in the order of execution.
  std::vector<std::vector<torch::jit::Node*>> nodes;
  // What nodes of several ops may use: constants and what follows from parameters.
  std::vector<torch::jit::Node*> common;
  std::vector<torch::jit::Value*> values;            // of each value of the graph
  std::vector<torch::jit::Value*> parameter_values;  // of each parameter of the graph
  std::vector<torch::Tensor> parameters;             // the network's own: parameters and buffers
  std::vector<std::pair<torch::jit::Node*, int>> drawing;  // operations, and their numbers
  // The dimension of each value that is the batch: -1 where there is none.
  std::vector<int> batch_dimension;
};

// What is recorded: the values of interest (the loss, say) from a batch.
using Traced = std::function<std::vector<torch::Tensor>(const torch::Tensor& input,
                                                        const torch::Tensor& target)>;

// With gradients if the network is in training mode. `input` and `target` are a batch; the graph's
// inputs are called so too. Throws an Error that names the construct when it can't be captured.
Capture capture(Network& network, const Traced& traced, const torch::Tensor& input,
                const torch::Tensor& target, const std::string& name);

// Finds the batch in the values of `capture`, with the help of a capture for another number of
// samples. Both must have the same ops.
void find_batch_dimensions(Capture& capture, const Capture& other);

}  // namespace renkei::model
