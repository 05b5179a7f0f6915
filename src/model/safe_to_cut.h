// In-place operations tie a value to the memory of another, which may be on another rank after a
// cut. Here they become operations that make a new tensor.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <unordered_map>
#include <vector>

namespace renkei::model {

using NodeRange = std::vector<torch::jit::Node*>;

// Returns the ranges of nodes, in the order of execution and without overlap, that must stay
// together, because they change memory that others of them see. `parameters` has the inputs that
// are parameters and buffers: operations that change them stay.
std::vector<NodeRange> make_safe_to_cut(
    torch::jit::Graph& code, const std::unordered_map<const torch::jit::Value*, int>& parameters);

// Whether an operation changes a parameter or buffer in place.
bool writes_to_parameter(const torch::jit::Node* node,
                         const std::unordered_map<const torch::jit::Value*, int>& parameters);

}  // namespace renkei::model
