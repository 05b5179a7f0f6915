// Sizes that every part of a program knows, because they follow from the number of samples alone:
// no tensor has to be sent so that somebody can ask for its shape.
#pragma once

#include <optional>
#include <vector>

#include "program/program.h"

namespace renkei::graph {

// Of each value: its size, if it is an integer that mentions the batch symbol at the most. Such are
// sizes of tensors, what is computed from them, and integers that come with their expression as
// their only size.
std::vector<std::optional<program::Size>> known_sizes(const program::Program& program);

}  // namespace renkei::graph
