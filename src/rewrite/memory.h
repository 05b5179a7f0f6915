// What an operation does besides computing its results.
#pragma once

#include <utility>
#include <vector>

#include "program/program.h"

namespace renkei::rewrite {

// Pairs of a result and the argument whose memory it shares, or may share.
std::vector<std::pair<program::ValueId, program::ValueId>> shared_memory(const program::Op& op);
std::vector<program::ValueId> written_by(const program::Op& op);
bool draws_random_numbers(const program::Op& op);

}  // namespace renkei::rewrite
