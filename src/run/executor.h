// Runs a program, or a part of one, on Torch's operators.
//
// When it is made, every operation is looked up in Torch's dispatcher, its constants are turned
// into what the operation takes, and values get registers. A run then pushes arguments and calls,
// one operation after the other, as Python would, so that autograd sees each; a register is freed
// at its last use. Sizes that follow from the number of samples can be given as
// expressions, so that a part needs no tensor just to know its shape.
//
// Operations that draw random numbers draw those of (seed, step, micro-batch, operation), whoever
// runs them: the number of an operation is its place among those that draw in the whole program.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <span>
#include <vector>

#include "program/program.h"
#include "run/execution_context.h"

namespace renkei::run {

struct KnownSize {
  program::ValueId value;  // an integer
  program::Size size;      // that follows from the number of samples
};

struct Part {
  std::vector<int> ops;                   // places in Program::ops, ascending
  std::vector<program::ValueId> outputs;  // values that the ops make
  std::vector<KnownSize> sizes = {};      // integers that no op of the part computes
};
Part whole(const program::Program& program);

class Executor {
 public:
  // Throws a data Error that names an operation which Torch does not have, or an argument that it
  // does not take.
  Executor(const program::Program& program, const Part& part);
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  // What the part needs: values from elsewhere, and places in Program::state, both ascending.
  const std::vector<program::ValueId>& inputs() const { return inputs_; }
  const std::vector<int>& state() const { return state_; }
  const std::vector<program::ValueId>& outputs() const { return outputs_; }

  // Tensors for inputs() and state(), in their order; gives those of outputs().
  std::vector<torch::Tensor> run(std::span<const torch::Tensor> inputs,
                                 std::span<const torch::Tensor> state, int64_t samples,
                                 ExecutionContext& context) const;

 private:
  struct Code;
  std::vector<program::ValueId> inputs_, outputs_;
  std::vector<int> state_;
  std::unique_ptr<Code> code_;
};

torch::ScalarType scalar_type(program::DType dtype);

}  // namespace renkei::run
