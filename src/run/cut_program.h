// A program with its graph: what is planned in the graph can be run in parts.
#pragma once

#include <vector>

#include "graph/lowering.h"
#include "run/executor.h"
#include "run/model.h"

namespace renkei::run {

class CutProgram {
 public:
  // Operations that change values in place become those that make new ones, where they can.
  explicit CutProgram(const program::Program& program, int64_t samples = 2);

  const program::Program& program() const { return lowered_.program; }
  const graph::Graph& graph() const { return lowered_.graph; }  // costs: counts of work, no times

  // Some ops of the graph, and the values that they shall give.
  Executor executor(const std::vector<graph::OpIndex>& ops,
                    const std::vector<graph::ValueIndex>& outputs) const;
  // What an executor of such a part takes, as values of the graph.
  std::vector<graph::ValueIndex> inputs_of(const Executor& executor) const;

  std::vector<int64_t> shape(graph::ValueIndex value, int64_t samples) const;
  torch::ScalarType dtype(graph::ValueIndex value) const;
  // Whether its sizes depend on more than the number of samples: on other values.
  bool has_open_sizes(graph::ValueIndex value) const {
    return open_sizes_[static_cast<size_t>(value)];
  }
  int batch_dimension(graph::ValueIndex value) const {  // -1: it has none
    return lowered_.batch_dimension[static_cast<size_t>(value)];
  }
  // The name of an input of the program; empty: the value is none.
  std::string_view input_name(graph::ValueIndex value) const;

 private:
  const program::Value& value_of(graph::ValueIndex value) const {
    return program().value(lowered_.values[static_cast<size_t>(value)]);
  }

  graph::Lowered lowered_;
  std::vector<bool> open_sizes_;  // of each value of the graph
};

}  // namespace renkei::run
