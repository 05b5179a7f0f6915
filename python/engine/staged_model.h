// A captured model, without its loss, on the engine's called network: whoever computes what, Python
// calls it. All functions by all ranks together, unless they say otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "captured_model.h"
#include "plan/plan.h"
#include "run/called_network.h"
#include "world.h"

namespace renkei::python {

class StagedModel {
 public:
  struct Options {
    int64_t samples = 1;                        // of a rank, for the plan
    NamedTensors batch = {};                    // to measure operators with
    std::optional<int64_t> micro_batches = {};  // of a rank's batch
    run::CalledNetwork::Buffers buffers = run::CalledNetwork::Buffers::rank0;
    std::map<std::string, std::string> settings = {};  // those of `renkei train`, as text
  };
  StagedModel(World& world, const CapturedModel& model, const Options& options);
  ~StagedModel();

  // The model in another mode, or for other inputs: a number for forward(); 0 is the first.
  int add(const CapturedModel& model);

  run::CalledNetwork& network() { return *network_; }
  bool draws() const { return draws_; }  // random numbers, as dropout does
  std::string plan() const;              // as in plan.json
  int stages() const { return plan_.stages; }
  // Not collective: parameters and buffers, and the ranks that have one.
  std::vector<std::string> names() const;
  const std::vector<int>& holders(const std::string& name) const;

 private:
  class NoData;

  std::map<std::string, std::string> given_;
  run::Model model_;
  std::vector<std::unique_ptr<run::BoundProgram>> others_;
  plan::Plan plan_;
  bool draws_ = false;
  std::unique_ptr<NoData> data_;
  std::unique_ptr<run::CalledNetwork> network_;
};

}  // namespace renkei::python
