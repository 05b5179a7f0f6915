// Values on their way between stages: activations forward, their gradients back. Those whose sizes
// are only known when they are made (how many tokens an expert gets) travel behind their sizes.
//
// Replicas of both stages have the same lanes (lanes.h), so each knows which samples it has in
// common with which rank. With one number of replicas everywhere tensors go as they are.
#pragma once

#include <torch/torch.h>

#include <map>
#include <vector>

#include "run/lanes.h"
#include "run/outbox.h"
#include "run/staged_network.h"

namespace renkei::run {

class StageLinks {
 public:
  StageLinks(comm::Transport& transport, std::vector<std::vector<int>> ranks_of_stage)
      : transport_(transport), ranks_of_stage_(std::move(ranks_of_stage)), outbox_(transport) {}

  // One end of a transfer, on this rank.
  struct End {
    const StagedNetwork& network;
    const Lanes& lanes;
    int stage;
    LaneRange mine;
    int64_t step;
    int micro_batch;

    int64_t samples() const { return lanes.samples(step, micro_batch, mine); }
    // What crosses between this stage and the other.
    const std::vector<int>& values(int other_stage) const;
  };

  using Values = std::map<int, torch::Tensor>;

  // Begins to send and goes on. `values` has all that cross to that stage, if there are samples.
  void send(const End& from, int to_stage, const Values& values);

  // Begins to receive; finish() waits for it.
  class Incoming {
   private:
    friend class StageLinks;
    struct Piece {
      torch::Tensor place, buffer;  // copied to its place where that is not contiguous
      comm::Request request;
      int rank;
    };
    struct Open {
      int value;
      torch::Tensor sizes;
      torch::ScalarType dtype;
      int rank;
      int tag;  // under which the value comes
      comm::Request request = {};
    };
    Values values_;
    std::vector<Piece> pieces_;
    std::vector<Open> open_;
  };
  Incoming post(const End& to, int from_stage);
  Values finish(Incoming incoming, const comm::Call& call);

  Outbox& outbox() { return outbox_; }
  // What the last send() or finish() moved, and the rank at the other end (of several the last).
  struct Moved {
    int64_t bytes = 0;
    int peer = -1;
  };
  const Moved& moved() const { return moved_; }

 private:
  struct Overlap {
    int rank;
    int64_t offset, count;  // samples of this rank's
    bool first;             // of those that the receiver gets something from
  };
  std::vector<Overlap> overlaps(const End& end, int other_stage, bool sends) const;

  comm::Transport& transport_;
  std::vector<std::vector<int>> ranks_of_stage_;
  Outbox outbox_;
  Moved moved_;
};

// Gradients of a value without a batch can't be told apart by samples: a data Error where stages
// with different numbers of replicas would exchange some.
void check_links(const StagedNetwork& network, const std::vector<std::vector<int>>& ranks_of_stage);

}  // namespace renkei::run
