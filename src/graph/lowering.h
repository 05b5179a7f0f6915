// From a program to a graph that can be planned, cut, and run in parts.
//
// Each operation that computes a tensor from the inputs is an op of the graph. Others are not:
//
//   what follows from constants, sizes,      is common: whoever uses it computes it himself
//   parameters or fixed states alone
//   numbers that follow from tensors         are common too: whoever uses them has the tensors
//   sizes that follow from the batch         are known by everyone, and no operations at all
//   changes of states, and checks            belong to the op that uses the state, or to the next
//   changes of memory that others see        stay with all that shares it (safe_to_cut.h)
#pragma once

#include <utility>
#include <vector>

#include "graph/graph.h"
#include "program/program.h"

namespace renkei::graph {

struct KnownSize {
  program::ValueId value;  // an integer
  program::Size size;      // mentions the batch symbol at the most
};

struct Lowered {
  program::Program program;           // safe to cut; its ops have the places that they had
  Graph graph;                        // its costs are counts of work, without times
  std::vector<std::vector<int>> ops;  // of each op of the graph: places in Program::ops, in order
  std::vector<int> common;            // places of ops that any part may compute for itself
  std::vector<std::vector<int>> linked;  // of those: who needs one of these needs all of them
  std::vector<program::ValueId> values;  // of each value of the graph
  std::vector<int> batch_dimension;      // of each value of the graph; -1: none
  std::vector<KnownSize> sizes;  // nobody computes these: they are neither in `ops` nor `common`
};

// The dimension of a value that grows as the batch does; -1: there is none.
int batch_dimension(const program::Program& program, const program::Value& value);

// The program computes its outputs from a batch; the graph's costs are for as many samples. Throws
// a data Error that names the program and the operation where it has no such graph.
Lowered lower(const program::Program& program, int64_t samples);

// The ops of a graph as they are run by one rank.
struct Part {
  std::vector<int> ops;  // places in Program::ops, in order, with the common ones that they need
  std::vector<ValueIndex> inputs;          // values that come from elsewhere, ascending
  std::vector<ParameterIndex> parameters;  // states that are used, ascending
};
Part part_of(const Lowered& lowered, const std::vector<OpIndex>& ops);

}  // namespace renkei::graph
