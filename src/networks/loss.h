// Losses as parts of a program.
//
// A training minimises the sum over the samples of each sample's loss. A sum, because then
// micro-batches and ranks of any size just add up, and one division by the number of samples of the
// whole batch gives the mean that a single process would compute.
//
//   classification   cross entropy of the scores in dimension 1, labels smoothed or not. A target
//                    is a label, or a row of labels for the positions of the output (pixels,
//                    tokens): then the loss of a sample is the mean over its positions, without
//                    those whose label is -100
//   regression       the mean squared error over the outputs of a sample
//   own loss         what the network returns: one number, the mean over the samples, or one per
//                    sample; what it is computed from is among the network's inputs
#pragma once

#include "networks/settings.h"
#include "program/program.h"

namespace renkei::networks {

// What a sample has as its target.
struct Target {
  bool label = true;  // one per sample
  int64_t size = 0;   // otherwise a row of this many: numbers, or labels of positions
};

struct LossOptions {
  Objective objective = Objective::classification;
  Target target = {};
  double auxiliary_weight = 0;  // of the outputs after the first that have the shape of the first
};

// A network's program becomes one with the output "loss", and with one input more, "target", unless
// it computes its loss. Labels are i64; numbers are of the type of the network's output.
program::Program training_program(program::Program network, const LossOptions& options);

// The same of a program in evaluation mode: the loss of the main output alone and, where samples
// have labels, how many of them have the highest score: "correct".
program::Program evaluation_program(program::Program network, const LossOptions& options);

}  // namespace renkei::networks
