// A stage on this rank, and the micro-batches on their way through it, forward and back.
//
// Values cross to the next stage as they are, their gradients come back; where a value is used by
// several stages, those in between pass it on, and its gradients add up on the way back in the
// order in which one process would add them: from the last use to the first.
//
//   recompute          a stage keeps only what came in, and computes forward again before backward,
//                      with the same random numbers and with copies of the running statistics; in
//                      segments, it keeps what crosses between them too, and goes through them from
//                      the last to the first, so that only one of them is in memory
//   two-part backward  the gradients of parameters of our kernels are put off; others are computed
//                      with those of the inputs
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "run/batch_loader.h"
#include "run/body.h"
#include "run/lanes.h"
#include "run/staged_network.h"

namespace renkei::run {

using CrossingValues = std::map<int, torch::Tensor>;

struct MicroBatch {
  int64_t samples = 0;
  RandomKey random;             // its random numbers
  bool changes_buffers = true;  // false: running statistics stay as they are
  Batch batch;
  CrossingValues received;   // values from the stage before; with recompute between segments, too
  CrossingValues leaves;     // the same, as the beginning of autograd's graph,
  CrossingValues inner;      // and as the body gets them
  CrossingValues made;       // values for the stage behind, and results
  CrossingValues gradients;  // of values, from the stage behind
  CrossingValues output_gradients;  // of results, from whoever uses them
  CrossingValues input_gradients;   // for the stage before
  std::unique_ptr<DeferredGradients> put_off;
};

class Stage {
 public:
  struct Place {
    int number = 0;
    std::vector<int> ranks;
    int replica = 0;  // of these
    LaneRange lanes;
    bool recompute = false;
  };
  // The network must outlive the stage.
  Stage(Place place, const StagedNetwork& network, int micro_batches);

  int number() const { return place_.number; }
  const Place& place() const { return place_; }
  const std::vector<std::string>& fields() const { return fields_; }  // that it loads
  MicroBatch& micro_batch(int number) { return micro_batches_[static_cast<size_t>(number)]; }
  std::vector<MicroBatch>& micro_batches() { return micro_batches_; }

  // What it loads and receives must be in the micro-batch.
  enum class Mode { training, evaluation };
  void forward(MicroBatch& micro, Mode mode, ExecutionContext& context);

  // `loss_gradient`: of the first output, where it is made here; none where the micro-batch has the
  // gradients of outputs. In two parts, what is put off stays in the micro-batch. Afterwards it has
  // the gradients for the stage before, and little else.
  enum class Part { whole, inputs };
  void backward(MicroBatch& micro, std::optional<double> loss_gradient, Part part,
                ExecutionContext& context);

  // For the stage behind: those made here, without their history, and those passed on.
  CrossingValues outgoing(const MicroBatch& micro) const;
  // An output of the network; undefined where it is not made here.
  torch::Tensor result(const MicroBatch& micro, size_t number) const;
  // The sum that it came to, likewise.
  std::optional<double> output(const MicroBatch& micro, size_t number) const;

 private:
  const plan::StageValues& values() const { return network_.stage(place_.number); }
  // What the segment makes, in the order of Segment::made.
  std::vector<torch::Tensor> compute(const Segment& segment, MicroBatch& micro, bool with_gradients,
                                     Body::Pass pass, ExecutionContext& context);
  void backward(const Segment& segment, MicroBatch& micro, std::optional<double> loss_gradient,
                ExecutionContext& context);

  Place place_;
  const StagedNetwork& network_;
  std::vector<Segment> segments_;
  std::vector<std::string> fields_;
  std::vector<MicroBatch> micro_batches_;
};

}  // namespace renkei::run
