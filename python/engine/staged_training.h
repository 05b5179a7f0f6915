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

// The ops of a captured model that a plan puts into stages; each beginning of the list can be one.
std::vector<std::string> ops_of(const CapturedModel& model,
                                const std::map<std::string, std::string>& settings);

class StagedTraining {
 public:
  // All ranks together: plans. The first step divides the parameters, so that the model can be run
  // as a whole until then. `batch` is an example of what step() gets; `settings` are those of
  // `renkei train`, as text.
  StagedTraining(World& world, const CapturedModel& model, const NamedTensors& batch,
                 const std::map<std::string, std::string>& settings,
                 timeline::RankFile* timeline = nullptr);
  ~StagedTraining();

  // Computes the gradients of the mean loss of all samples, which is returned.
  double step(const NamedTensors& batch);
  std::string plan() const;  // as in plan.json
  std::vector<std::string> names() const;
  // All ranks together: the tensor on rank 0, undefined elsewhere.
  torch::Tensor fetch(const std::string& name);
  std::vector<std::string> held() const;  // names of the state that this rank has
  void close();

 private:
  class Samples;

  World& world_;
  std::unique_ptr<Samples> samples_;
  timeline::RankFile* timeline_;  // null: nothing is recorded
  run::Model model_;
  plan::Plan plan_;
  run::TrainOptions options_;
  std::unique_ptr<job::Session> session_;
};

}  // namespace renkei::python
