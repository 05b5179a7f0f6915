// A graph that torch.compile has captured, as a program with our rewrites and kernels. It runs
// under autograd as the graph would: backward is that of the operations.
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/compute_options.h"
#include "run/executor.h"

namespace renkei::python {

class CompiledGraph {
 public:
  struct Source {
    std::string text;  // of the exported program
    std::vector<std::pair<std::string, std::string>>
        tied;                        // further names of a tensor, and its first
    std::vector<std::string> names;  // inputs and state, in the order in which run() gets them
  };
  struct Use {
    bool training = true;                // gradients are asked for
    bool inputs_need_gradients = false;  // those that are no parameters
  };
  // Throws data Errors for what the executor does not have. `settings` are those of `renkei train`.
  CompiledGraph(const Source& source, Use use, const std::map<std::string, std::string>& settings);

  // Random numbers are those that the graph itself would draw.
  std::vector<torch::Tensor> run(const std::vector<torch::Tensor>& tensors) const;

  const std::vector<std::string>& rewrites() const { return rewrites_; }  // what was made faster
  std::vector<std::string> operations() const { return operations_; }     // names, as they are run

 private:
  std::vector<std::string> rewrites_, operations_;
  run::ComputeOptions options_;
  std::vector<size_t> inputs_, state_;  // places among the tensors
  std::unique_ptr<run::Executor> executor_;
};

}  // namespace renkei::python
