// One exported program of a .pt2 file: the graph, and its signature, which says what the graph's
// inputs and outputs are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "capture/json_reading.h"
#include "capture/pt2_weights.h"
#include "program/program.h"

namespace renkei::capture {

struct ReadProgram {
  program::Program program;
  std::vector<StoredTensor> tensors;  // of program.state
};

// Pairs of parameters that are one, where the memory can't tell (a model on "meta").
using TiedNames = std::vector<std::pair<std::string, std::string>>;

ReadProgram read_exported_program(const json& exported, const Weights& weights,
                                  const TiedNames& tied, const Place& place);

}  // namespace renkei::capture
