// How the operations of a program are divided among the ranks of a tensor group: for each the name
// of its strategy (rules.h). Operations are known by the name of their first result; those that are
// not in it are computed whole.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "program/program.h"
#include "shard/layout.h"
#include "shard/rules.h"

namespace renkei::shard {

using Choice = std::map<std::string, std::string, std::less<>>;

std::string key_of(const program::Program& program, const program::Op& op);  // empty: none

// How parameters must lie, by name: what the user asks for, or what training has for evaluation.
// Names may have * in them; the first that fits counts.
struct Pin {
  std::string name;
  Layout layout;
};
using Pins = std::vector<Pin>;
const Pin* find_pin(const Pins& pins, const program::State& state);
// "mlp.*.weight:1=model": dimension 1 of these parameters is split over the tensor group; "=none"
// without a dimension: they are whole. Several, apart by commas. Throws a usage Error.
Pins parse_pins(const std::string& text);

// A program that can be divided: without operations in place where there is another way, and with
// sizes that come from its inputs.
struct Divisible {
  program::Program program;
  std::vector<bool> fixed;  // of each op: must be computed whole, it has memory in common
};
Divisible make_divisible(const program::Program& program);

// What a value must go through to be had in another layout, when it is there in some.
struct Step {
  Layout from, to;
};
std::vector<Step> way(std::span<const Layout> available, const Layout& wanted);

// Traffic of a step in halves of an allreduce of the value, forward and back.
struct Halves {
  int forward = 0, backward = 0;
};
Halves halves_of(const Step& step);

// The layout in which a state begins that is first used so.
Layout begin_of(const Layout& first_use);

}  // namespace renkei::shard
