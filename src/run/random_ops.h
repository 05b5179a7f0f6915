// Operations that draw random numbers, keyed: they draw the same whoever computes them, and however
// often. One that takes a generator gets one of its own; others draw from Torch's, which all
// threads share, so they take turns.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "run/argument_values.h"
#include "run/execution_context.h"

namespace renkei::run {

uint64_t seed_of(const RandomKey& key, int operation);

// Calls the operation. `generator_at` is the place of its argument for a generator; -1: it has
// none.
void draw(const c10::OperatorHandle& operation, Stack& stack, int generator_at, uint64_t seed);

}  // namespace renkei::run
