// Parameters that some ranks have in common, of a stage or tied, and what they do with them:
// allocate, reduce, update.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/sub_transport.h"
#include "run/flat_parameters.h"
#include "run/parameter_updater.h"

namespace renkei::run {

// Bytes of this rank that stay from step to step.
struct Held {
  int64_t parameters = 0;
  int64_t shared_out = 0;  // of these, what other ranks of the host have in common with this one
  int64_t in_tensors = 0;  // of the parameters, those in memory of Torch's allocator
  int64_t gradients = 0;
  int64_t optimizer = 0;

  Held& operator+=(const Held& other);
  // What a device of its own would hold beside tensors.
  int64_t beside_tensors() const { return gradients + optimizer + parameters - in_tensors; }
};

class SharedParameters {
 public:
  struct Options {
    std::vector<int> ranks;   // of the world, ascending; this one among them
    int channel = 0;          // of messages, apart from those of others
    bool divide = false;      // the optimizer's state, among all ranks
    bool own_values = false;  // each rank has its own, though others of its host have the same
    UpdateOptions update;
  };
  // All its ranks together. They take the values of the first. No parameters: only the
  // communicator.
  SharedParameters(const std::vector<torch::Tensor>& parameters, comm::Communicator& world,
                   GradientSink& sink, const Options& options);

  // All its ranks together, when nobody uses the values any more.
  void close();

  comm::Communicator& communicator() { return *communicator_; }
  FlatParameters* flat() { return flat_.get(); }
  ParameterUpdater* updater() { return updater_.get(); }  // null: there is nothing to update
  Held held() const;

  // Whether this rank answers for its values: of those that have them in common, the first.
  bool has_own_values() const { return !values_are_shared_ || communicator_->local_rank() == 0; }

  // Elements of the flat buffer: those that this rank fills where all have to be filled (ranks that
  // have the values in common divide them), and those that it writes where each is written once.
  comm::Range filled() const;
  comm::Range written() const;

 private:
  std::unique_ptr<comm::SubTransport> transport_;
  std::unique_ptr<comm::Communicator> communicator_;
  bool values_are_shared_ = false;  // by the ranks of the host
  std::unique_ptr<FlatParameters> flat_;
  std::unique_ptr<ParameterUpdater> updater_;
};

}  // namespace renkei::run
