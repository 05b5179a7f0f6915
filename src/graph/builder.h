#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace renkei::graph {

// Makes graphs op by op, in 32-bit floating point, with FLOPs and memory traffic; the times are
// left to estimate_seconds.
class Builder {
 public:
  Builder(std::string name, int64_t batch);

  // A value of `elements` numbers for each sample.
  ValueIndex input(std::string name, int64_t elements, bool gradient = false);
  ParameterIndex parameter(std::string name, int64_t elements, bool trainable = true);

  struct OpOptions {
    std::string name, kind;
    std::vector<ValueIndex> inputs;
    std::vector<ParameterIndex> parameters = {};
    int64_t elements = 0;                // of the output, for each sample
    double flops = 0;                    // of forward, for each sample
    std::vector<ValueIndex> saves = {};  // inputs that backward needs
    bool saves_output = false;           // whether it needs the output
    bool scalar = false;                 // the output is one number for the whole batch: a loss
  };
  ValueIndex op(OpOptions options);

  // A matrix product with a weight and a bias, applied to `rows` rows of each sample.
  ValueIndex linear(const std::string& name, ValueIndex from, int64_t rows, int64_t in,
                    int64_t out);
  // An op without parameters on every element.
  ValueIndex pointwise(const std::string& name, const std::string& kind,
                       std::vector<ValueIndex> from, int64_t elements, bool saves_output);

  // Convolution without bias, batch norm and ReLU where they are wanted; images are square.
  struct ConvOptions {
    std::string name;
    int64_t in, out;  // channels
    int64_t taps;     // of the kernel: 9 for 3 × 3
    int64_t pixels;   // of the output's side
    bool norm = true, relu = true;
  };
  ValueIndex conv(ValueIndex from, const ConvOptions& options);
  ValueIndex pool(const std::string& name, ValueIndex from, int64_t elements, int64_t window);
  // The loss: one number.
  ValueIndex cross_entropy(ValueIndex scores, ValueIndex target, int64_t elements);

  Graph finish(ValueIndex output);

 private:
  int64_t keep(ValueIndex value);  // bytes, once for each value

  Graph graph_;
  std::unordered_set<ValueIndex> kept_;
};

}  // namespace renkei::graph
