// The program of one rank of a tensor group: operations get the sizes of their parts, parameters
// become slices, and between them are the exchanges that a choice of strategies needs, as
// operations:
//
//   renkei::tp_copy      whole → copied      back: allreduce
//   renkei::tp_sum       partial → whole     forward: allreduce
//   renkei::tp_split     whole → split       back: all-gather
//   renkei::tp_slice     copied → split      back: zeros around the part
//   renkei::tp_gather    split → whole       forward: all-gather
//   renkei::tp_collect   split → copied      forward: all-gather, back: reduce-scatter
//   renkei::tp_scatter   partial → split     forward: reduce-scatter, back: all-gather
//   renkei::tp_first     whole → partial     the first rank has it, the others zeros
//   renkei::tp_once      copied → whole      back: the first rank's gradient counts
//
// What is computed is what the whole program computes, up to the order of sums; random numbers are
// those of the same elements. Exchanges are operations like others, so everything behind (rewrite/,
// graph/, plan/, run/) takes the program as it is.
#pragma once

#include "shard/choice.h"
#include "shard/slice.h"

namespace renkei::shard {

struct Sharded {
  program::Program program;
  std::vector<Slice> state;    // of each place of the state
  bool divides_batch = false;  // ranks have different samples in places
};

struct ShardOptions {
  Part part = {};
  Choice choice = {};
  Pins pins = {};
  bool counted_dropout = true;  // as it was solved with
};

// Throws a data Error where the choice is not of this program.
Sharded shard(const program::Program& program, const ShardOptions& options);

// As pins: how the state lies, for another program of the same network.
Pins pins_of(const Sharded& sharded);

bool is_exchange(const program::Op& op);

}  // namespace renkei::shard
