// Which operations can be computed in parts, and how: one rule for each kind of operation.
//
// A rule lists strategies. Each says in which layout (layout.h) an operation takes its arguments,
// in which it gives its results, and what changes in the operation itself on one rank. The first
// strategy is always "whole": every rank computes everything, which is right for any operation,
// also for those that no rule knows.
//
// A strategy is right if, with arguments in its layouts, results and the gradients that come back
// are in theirs. tests/run/shard_rules_test.cpp holds every row against the operation as it is.
//
//   rules_layers.cpp   products, convolutions, attention, normalisation, look-ups, losses
//   rules_shapes.cpp   views, transpositions, cuts, concatenations
//   rules.cpp          element by element, reductions, and the table
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "program/program.h"
#include "shard/layout.h"

namespace renkei::shard {

struct Strategy {
  std::string name;
  std::vector<Layout> inputs = {};   // of program::references(op), in their order
  std::vector<Layout> outputs = {};  // of its outputs
  bool divided = true;               // a rank does its part of the work only
  // Reduced over the group while it computes forward, beside the conversions around it.
  double exchanged_bytes = 0;  // for one sample
  // Makes of the operation, whose arguments are in place, that of one rank.
  std::function<void(program::Op& op)> localise = {};
};

struct RuleOptions {
  int parts = 2;                      // T
  bool batch = true;                  // may dimensions be split that grow with the batch?
  bool counted_dropout = true;        // dropout draws by the place of an element (renkei::dropout)
  std::vector<int64_t> blocks = {1};  // of split dimensions
};

// Numbers of blocks that operations of the program cut dimensions into; begins with 1.
std::vector<int64_t> blocks_of(const program::Program& program);

std::vector<Strategy> strategies(const program::Program& program, const program::Op& op,
                                 const RuleOptions& options);

}  // namespace renkei::shard
