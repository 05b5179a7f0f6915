// A network as it is trained: what is computed from a batch, and the tensors that stay from step to
// step.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "run/batch_loader.h"
#include "run/body.h"
#include "shard/slice.h"

namespace renkei::run {

// A program with the tensors of its state, in the order of Program::state. With a function, that is
// what computes, and the program only names inputs, outputs and state.
struct BoundProgram {
  program::Program program;
  std::vector<torch::Tensor> state;
  NetworkFunction function = {};
};

struct Model {
  BoundProgram training;  // from the fields of samples to "loss", the sum over the samples
  // To "loss" and, where samples have labels, "correct": how many were predicted. Its tensors are
  // those of training. Empty, with the reason, where it can't be had.
  std::optional<BoundProgram> evaluation;
  std::optional<Error> no_evaluation;

  // What this rank has of each place of the training state, where ranks compute parts of it
  // together; empty: the whole.
  std::vector<shard::Slice> slices;
  bool divides_batch = false;  // some of it by samples

  bool is_trained(size_t state) const;         // a parameter that has gradients
  std::vector<torch::Tensor> trained() const;  // all of them
  // Those that operations of Torch's own use too: autograd carries all their gradients.
  std::vector<torch::Tensor> trained_by_autograd() const;
  std::vector<torch::Tensor> buffers() const;
  int64_t parameter_count() const;  // values of all parameters, frozen ones too
  BoundProgram& evaluation_or_throw();

  // A place of the training state has a tensor without memory until somebody needs it, and after it
  // was released. `initialise` gives it its first values.
  std::function<void(size_t place, const torch::Tensor& tensor)> initialise = {};
  torch::Tensor make_tensor(size_t place) const;  // of its shape and type, without values
  torch::Tensor make_whole(size_t place) const;   // of the shape that all ranks have together
  std::vector<int64_t> whole_sizes(size_t place) const;
  // The part of the whole; a split one is put together from all.
  shard::Slice slice(size_t place) const;
  bool has_memory(size_t place) const;
  void materialise(size_t place);  // unless it is
  void release(size_t place);
};

// A tensor for a place of the state, without values (empty memory), with gradients where it is
// trained.
torch::Tensor make_state(const program::Program& program, size_t place);
// For all places, without memory.
std::vector<torch::Tensor> make_placeholders(const program::Program& program);

// The state of a second program of the same network: tensors of the same name are the same; others,
// constants of its own, are made by `make`. Throws a data Error where a shape differs.
std::vector<torch::Tensor> shared_state(const program::Program& program, const BoundProgram& other,
                                        const std::function<torch::Tensor(size_t)>& make);

// What a program takes of a sample.
std::vector<BatchInput> inputs_of(const program::Program& program);

// The tensors of a batch for some inputs of a program, in their order.
std::vector<torch::Tensor> batch_inputs(const program::Program& program,
                                        const std::vector<program::ValueId>& inputs,
                                        const Batch& batch);

// Those of a program's state at the given places.
std::vector<torch::Tensor> tensors_at(const std::vector<torch::Tensor>& state,
                                      const std::vector<int>& places);

}  // namespace renkei::run
