// A network in stages, in training or in evaluation: what each stage computes, and what crosses
// from one to the next. One stage is not cut, whatever it computes.
#pragma once

#include <optional>
#include <vector>

#include "plan/stage_values.h"
#include "run/body.h"
#include "run/cut_program.h"
#include "run/model.h"

namespace renkei::run {

// A part of a stage that is computed at once: all of it, unless it is recomputed in several.
struct Segment {
  Body body;
  std::vector<int> made;   // its values, in the order of the body's outputs
  std::vector<bool> kept;  // of each: later segments of the stage use it
};

class StagedNetwork {
 public:
  // As the plan says. `network` must outlive this object.
  StagedNetwork(const BoundProgram& network, const plan::Plan& plan);
  // Another program of the same network: an op goes where its parameters are, `stages_of[p]`
  // ascending for each place p of the state.
  StagedNetwork(const BoundProgram& network, const std::vector<std::vector<int>>& stages_of,
                int stages);

  const plan::StageValues& stage(int number) const { return stages_[static_cast<size_t>(number)]; }
  int stages() const { return static_cast<int>(stages_.size()); }
  std::vector<Segment> segments(int stage) const;
  const program::Program& program() const { return network_.program; }

  // For each place of the state, the stages that use it, ascending.
  std::vector<std::vector<int>> stages_of_state() const;
  std::vector<bool> loads() const;  // of each stage

  // The value of each output of the program.
  const std::vector<int>& outputs() const { return outputs_; }

  // Of a value that crosses.
  std::vector<int64_t> shape(int value, int64_t samples) const {
    return cut_->shape(value, samples);
  }
  torch::ScalarType dtype(int value) const { return cut_->dtype(value); }
  bool has_open_sizes(int value) const { return cut_->has_open_sizes(value); }
  int batch_dimension(int value) const { return cut_->batch_dimension(value); }
  bool has_gradient(int value) const {
    return cut_->graph().values[static_cast<size_t>(value)].gradient;
  }

 private:
  void keep_whole();
  Body body(const plan::StageValues& values) const;

  const BoundProgram& network_;
  std::optional<CutProgram> cut_;  // none: one stage
  std::vector<plan::StageValues> stages_;
  std::vector<std::vector<plan::StageValues>> segments_;  // of each stage
  std::vector<int> outputs_;
};

}  // namespace renkei::run
