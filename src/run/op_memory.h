// What the ops of a network need of memory, found by running each on its own: what autograd keeps
// of it for backward, what is kept after that while gradients of parameters are put off, and what
// the op needs beside that while it computes.
//
// A value is kept when any op keeps it, the one that makes it or one that uses it, whether itself
// or a view of it. What only passes through, like the sum that the next op reads and nobody needs
// for backward, counts as workspace of those two.
#pragma once

#include <vector>

#include "run/cut_program.h"

namespace renkei::run {

class OpMemory {
 public:
  OpMemory(const CutProgram& program, int64_t samples, ExecutionContext& context);

  // Runs an op; in the order of the graph, as the views among its inputs must be known. The
  // inputs are leaves, and with `state` those of its executor; gradients of parameters must have a
  // place to go.
  void measure(graph::OpIndex op, const Executor& executor,
               const std::vector<torch::Tensor>& inputs, const std::vector<torch::Tensor>& state);

  // Into the ops, when all of them have been measured.
  void write_to(std::vector<graph::Op>& ops) const;

 private:
  struct Kept {
    std::vector<bool> roots;
    std::vector<int64_t> inside;  // by op, what is no value of the graph
    int64_t of(const OpMemory& memory, size_t op) const;
  };
  struct Peaks {
    int64_t forward = 0;   // all that forward makes
    int64_t backward = 0;  // all that backward makes, with the gradients that it begins with
  };
  class Watch;

  void find_views(graph::OpIndex op, const Executor& executor,
                  const std::vector<torch::Tensor>& inputs, const std::vector<torch::Tensor>& state,
                  const std::vector<torch::Tensor>& outputs);

  const CutProgram& program_;
  int64_t samples_;
  ExecutionContext& context_;
  // The value whose memory each value lies in: itself, or what it is a view of; -1: a parameter.
  std::vector<graph::ValueIndex> root_;
  Kept saved_, deferred_;
  std::vector<Peaks> peaks_;
};

}  // namespace renkei::run
