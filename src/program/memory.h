// Which values may share memory, and what that means for operations that change their arguments.
#pragma once

#include <vector>

#include "program/program.h"

namespace renkei::program {

// Values in the same memory have the same root: the first of them. Views, results of in-place
// operations and what may be one of these count as shared.
std::vector<ValueId> memory_roots(const Program& program);

// The state whose memory each operation may change; empty for most.
std::vector<std::vector<const State*>> changed_state(const Program& program);

// Removes operations without which outputs and state are the same. Values keep their places.
void remove_dead_ops(Program& program);

}  // namespace renkei::program
