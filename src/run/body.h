// What a stage computes: a part of a program, or a function that is not cut.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "run/executor.h"

namespace renkei::run {

// A network that computes in its own way, whatever that is (control flow, Python): from the inputs
// of the program that describes it to its outputs. Autograd must see what it does.
using NetworkFunction = std::function<std::vector<torch::Tensor>(
    std::span<const torch::Tensor> inputs, int64_t samples, ExecutionContext& context)>;

class Body {
 public:
  // Of a batch, by name, or a value from the stage before.
  struct Input {
    std::string field;
    int value = -1;

    bool from_batch() const { return value < 0; }
  };

  // `state`: of the whole network, in the order of Program::state; it must outlive the body.
  Body(Executor executor, std::vector<Input> inputs, const std::vector<torch::Tensor>& state);
  Body(NetworkFunction function, std::vector<Input> inputs,
       const std::vector<torch::Tensor>& state);

  const std::vector<Input>& inputs() const { return inputs_; }
  bool takes(int value) const { return std::ranges::count(inputs_, value, &Input::value) > 0; }

  // Tensors for the inputs, in their order. `again`: what was computed before is computed a second
  // time, and tensors without gradients (running statistics) do not change a second time.
  enum class Pass { first, again };
  std::vector<torch::Tensor> run(std::span<const torch::Tensor> inputs, int64_t samples, Pass pass,
                                 ExecutionContext& context) const;

 private:
  std::vector<torch::Tensor> call(std::span<const torch::Tensor> inputs, int64_t samples, Pass pass,
                                  ExecutionContext& context) const;

  std::vector<Input> inputs_;
  const std::vector<torch::Tensor>* state_;
  std::optional<Executor> executor_;
  NetworkFunction function_;
};

}  // namespace renkei::run
