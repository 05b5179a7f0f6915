// An optimizer works on the flat buffers of values and gradients, or on any part of them: a rank
// may update only its shard, and each bucket as soon as it is reduced. The bits do not depend on
// how the buffer is cut. docs/optimizers.md has the formulas.
//
// A step:
//
//   1  LARS and LAMB only (needs_norms): norms() of each part, added up over parts and ranks
//   2  update() of each part
//
// Different parts may be updated at the same time by different threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "optim/kernels.h"
#include "optim/layout.h"

namespace renkei::optim {

enum class OptimizerKind { sgd, adam, adamw, lars, lamb, rmsprop_warmup };

std::string_view name_of(OptimizerKind kind);

struct OptimizerOptions;
// Numbers of state for each parameter: 1 for a momentum, 2 for Adam.
int states_per_parameter(const OptimizerOptions& options);

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double weight_decay = 0;
  double momentum = 0;    // SGD, LARS, RMSprop warm-up
  bool nesterov = false;  // SGD
  double beta1 = 0.9;     // Adam, AdamW, LAMB
  double beta2 = 0.999;   // and the RMSprop warm-up
  double epsilon = 1e-8;
  double trust = 0.001;  // LARS: the rate of a parameter over its norm
  // The warm-up goes over from RMSprop to SGD around this epoch, within about so many epochs.
  double rms_learning_rate = 3e-4;
  double rms_centre_epoch = 10;
  double rms_width_epochs = 5;
};

// Throws a usage Error where the options contradict each other.
void check(const OptimizerOptions& options);

// What changes from step to step.
struct Step {
  int64_t number = 1;  // the first step has the number 1
  double epoch = 0;    // passes over the data set done so far, with fractions
  double learning_rate = 0.01;
  // Multiplies the sum of the gradients: 1 / ranks, loss scaling, clipping.
  double gradient_scale = 1;
};

// How much of the warm-up's step is SGD: from 1/2 e^(-2 centre / width) to 1.
double sgd_share_of_warmup(const OptimizerOptions& options, double epoch);

// A part of the flat buffer, in numbers.
struct Range {
  size_t begin = 0;
  size_t end = 0;
};

// Of f32 or f64 numbers.
template <class Number>
class OptimizerOf {
 public:
  // Keeps state for `shard` only.
  OptimizerOf(const OptimizerOptions& options, std::vector<Parameter> parameters, Range shard);

  const OptimizerOptions& options() const { return options_; }
  size_t parameters() const { return parameters_.size(); }
  bool needs_norms() const { return rule_ == Rule::lars || rule_ == Rule::lamb; }

  // Adds what the elements from `begin` on contribute to the norms of each parameter tensor.
  // `values` and every array of `gradients` start with the element `begin`. To be added up over the
  // ranks as as_integers(norms).
  void norms(size_t begin, std::span<const Number> values, GradientsOf<Number> gradients,
             const Step& step, std::span<Norms> norms) const;

  // One step for the elements from `begin` on; once in each step for each element of the shard.
  // The gradients are only read. `norms` is empty where they are not needed.
  void update(size_t begin, std::span<Number> values, GradientsOf<Number> gradients,
              const Step& step, std::span<const Norms> norms = {});

  // The state, for checkpoints: one array per kind, each of the size of the shard, empty for plain
  // SGD.
  Range shard() const { return shard_; }
  int states() const { return states_of(rule_); }
  std::span<Number> state(int index) { return {state_[index].get(), shard_.end - shard_.begin}; }
  size_t state_bytes() const {
    return static_cast<size_t>(states()) * (shard_.end - shard_.begin) * sizeof(Number);
  }

 private:
  struct Free {
    void operator()(Number* memory) const;
  };
  using Memory = std::unique_ptr<Number, Free>;
  static Memory zeros(size_t count);

  // Calls body(segment, begin, end) for the parts of the segments in a range.
  template <class Body>
  void for_segments(Range range, GradientsOf<Number> gradients, const Body& body) const;
  CoefficientsOf<Number> coefficients_of(const Step& step) const;
  double ratio_of(const Norms& norms) const;

  OptimizerOptions options_;
  Rule rule_;
  std::vector<Parameter> parameters_;
  std::vector<Segment> segments_;
  Range shard_;
  Memory state_[2];
};
using Optimizer = OptimizerOf<float>;

// The norms as whole numbers that can be added up over the ranks.
std::span<int64_t> as_integers(std::span<Norms> norms);
std::span<int64_t> as_integers(SquareSum& sum);

// What to multiply the gradients with so that their norm is at most `limit`, as torch's
// clip_grad_norm_ does.
double clip_factor(double norm, double limit);

}  // namespace renkei::optim
