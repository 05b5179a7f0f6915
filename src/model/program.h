// A part of a captured network that can be run: some of its ops, with values in and out.
#pragma once

#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/torch.h>

#include <vector>

#include "model/capture.h"

namespace renkei::model {

class Program {
 public:
  // `outputs` are values that the ops produce.
  Program(const Capture& capture, const std::vector<graph::OpIndex>& ops,
          std::vector<graph::ValueIndex> outputs);

  const std::vector<graph::ValueIndex>& inputs() const { return inputs_; }
  const std::vector<graph::ValueIndex>& outputs() const { return outputs_; }
  const std::vector<graph::ParameterIndex>& parameters() const { return parameters_; }

  // Values for inputs() and parameters(), in their order; gives those of outputs(). Operation by
  // operation as Python would, so that autograd sees each.
  std::vector<torch::Tensor> run(const std::vector<torch::Tensor>& inputs,
                                 const std::vector<torch::Tensor>& parameters) const;

 private:
  std::vector<graph::ValueIndex> inputs_, outputs_;
  std::vector<graph::ParameterIndex> parameters_;
  torch::jit::Code code_;
};

}  // namespace renkei::model
