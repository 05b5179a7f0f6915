// The whole step of a captured model with its loss, on the engine's session: whoever computes what.
// Every rank has the samples of all of them, in the order of the ranks; the parameters are updated
// by Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "captured_model.h"
#include "job/session.h"
#include "world.h"

namespace renkei::python {

class StagedTraining {
 public:
  // All ranks together. `batch` is an example of what step() gets; `settings` are those of
  // `renkei train`, as text.
  StagedTraining(World& world, const CapturedModel& model, const NamedTensors& batch,
                 const std::map<std::string, std::string>& settings,
                 timeline::RankFile* timeline = nullptr);
  ~StagedTraining();

  // Computes the gradients of the mean loss of all samples, which is returned.
  double step(const NamedTensors& batch);
  bool draws() const { return draws_; }  // random numbers, as dropout does
  std::string plan() const;              // as in plan.json
  std::vector<std::string> names() const;
  // All ranks together: the tensor on rank 0, undefined elsewhere.
  torch::Tensor fetch(const std::string& name);
  std::vector<std::string> held() const;  // names of the state that this rank has
  void close();

 private:
  class Samples;

  std::unique_ptr<Samples> samples_;
  run::Model model_;
  plan::Plan plan_;
  bool draws_ = false;
  std::unique_ptr<job::Session> session_;
};

}  // namespace renkei::python
