// What operations do beside computing their outputs: change their arguments, share their memory,
// draw random numbers, stop gradients.
//
// The tables are of PyTorch's own operations (aten) and of Renkei's; tests/program/
// effects_against_torch.py compares them with PyTorch's schemas. Of operators of other libraries
// only the name is known: those that end in _ change their first argument, the others change
// nothing; who reads them in checks that against their schemas (capture/).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace renkei::program {

// The parts of "aten.add_.Tensor"; the overload may be missing.
struct Target {
  std::string_view library, name, overload;
};
Target parts_of(std::string_view target);

// The arguments, by name, that it changes: relu_ its input, batch_norm in training its statistics.
// Only those that are given.
std::vector<std::string> writes(const Op& op);
// The same as values.
std::vector<ValueId> written_values(const Op& op);

// The argument whose memory outputs may share (a view, or the argument itself); empty: none. It is
// a list where the operation takes one.
std::string alias_of(const Op& op);

// Whether it gives a view and computes nothing at all: reshape may copy, but is counted here too.
bool is_view(const Op& op);

// Whether it draws random numbers, given its arguments: dropout in training does.
bool draws(const Op& op);

// Whether it normalises by the statistics of the batch, as in training.
bool normalises_by_batch(const Op& op);

// aten's batch_norm in its forms that have an argument `training`.
bool is_batch_norm(std::string_view name);

// Whether a gradient can go from its outputs to its arguments.
bool differentiable(const Op& op);

}  // namespace renkei::program
