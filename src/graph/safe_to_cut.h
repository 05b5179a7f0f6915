// In-place operations tie a value to the memory of another, which may be on another rank after a
// cut. Where nobody sees the difference they become operations that make a new tensor (relu_ is
// relu); the others stay together with all that shares the memory up to the last change of it.
//
// What comes after the last change may be elsewhere: it gets the value as it is then. Inputs and
// states are not handed on between ranks, each loads its own: whoever uses one that is changed
// stays with those who change it.
#pragma once

#include <vector>

#include "program/program.h"

namespace renkei::graph {

struct SafeToCut {
  program::Program program;  // its ops have the places that they had
  // Places of ops that must stay together: at least two each, ascending, no op twice.
  std::vector<std::vector<int>> together;
};

SafeToCut make_safe_to_cut(program::Program program);

// Of each value: whether a gradient flows back through it, from what is computed with trainable
// parameters. Operations under no_grad and those that have no derivative stop it.
std::vector<bool> values_with_gradient(const program::Program& program);

}  // namespace renkei::graph
