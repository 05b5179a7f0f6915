// Random programs with views, changes in place and states, run as one and in parts, as ranks would
// run them: a part has its own copies of the states, and gets copies of the values of others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "base/philox.h"
#include "graph/lowering.h"
#include "tests/graph/programs.h"

namespace renkei::graph {
namespace {

using program::Program;
using program::Reference;
using program::ValueId;
using test::HandMade;

constexpr int64_t kLength = 4;

// A piece of memory.
struct Tensor {
  std::shared_ptr<std::vector<uint32_t>> memory;
  size_t begin = 0, length = 0;

  uint32_t& at(size_t i) const { return (*memory)[begin + i % length]; }
  std::vector<uint32_t> values() const {
    std::vector<uint32_t> all;
    for (size_t i = 0; i < length; ++i) all.push_back(at(i));
    return all;
  }
};
Tensor tensor_of(std::vector<uint32_t> values) {
  const size_t length = values.size();
  return {std::make_shared<std::vector<uint32_t>>(std::move(values)), 0, length};
}
Tensor copy_of(const Tensor& tensor) {
  return tensor_of(tensor.values());
}

using Registers = std::map<ValueId, Tensor>;

const Tensor& tensor(const program::Op& op, const std::string& name, const Registers& registers) {
  return registers.at(std::get<Reference>(*find_argument(op, name)).value);
}

Tensor compute(const program::Op& op, const Registers& registers) {
  if (op.target == "aten.zeros.default") return tensor_of(std::vector<uint32_t>(kLength));
  const Tensor& self = tensor(op, "self", registers);
  if (op.target == "aten.slice.Tensor") {
    const auto start = static_cast<size_t>(std::get<int64_t>(*find_argument(op, "start")));
    const auto end = static_cast<size_t>(std::get<int64_t>(*find_argument(op, "end")));
    return {self.memory, self.begin + start, end - start};
  }
  const Tensor& other = tensor(op, "other", registers);
  const bool in_place = op.target.find("_.") != std::string::npos;
  const bool adds = op.target.starts_with("aten.add");
  const Tensor result = in_place ? self : copy_of(self);
  const Tensor operand = copy_of(other);
  for (size_t i = 0; i < result.length; ++i)
    result.at(i) = adds ? self.at(i) + operand.at(i) : self.at(i) * operand.at(i);
  return result;
}

void run(const Program& program, const std::vector<int>& ops, Registers& registers) {
  for (const int place : ops) {
    const program::Op& op = program.ops[static_cast<size_t>(place)];
    registers[op.outputs[0]] = compute(op, registers);
  }
}

Tensor start_of(ValueId value) {
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < kLength; ++i)
    values.push_back(static_cast<uint32_t>(value) * 10 + 3 + 2 * i);
  return tensor_of(values);
}

Program random_program(Random& random) {
  HandMade net;
  std::vector<ValueId> tensors;
  tensors.push_back(net.input("input", {kLength}));
  tensors.push_back(net.input("second", {kLength}));
  tensors.push_back(net.state("weight", {kLength}));
  tensors.push_back(net.buffer("buffer", {kLength}));
  tensors.push_back(net.buffer("another", {kLength}));
  const auto pick = [&] {  // mostly what is new
    const auto count = static_cast<uint32_t>(tensors.size());
    const uint32_t back =
        random.uniform() < 0.6f ? random.below(std::min(count, 4u)) : random.below(count);
    return tensors[count - 1 - back];
  };
  const float share_in_place = random.uniform(0.0f, 0.4f);
  for (uint32_t left = 4 + random.below(14); left > 0; --left) {
    const float what = random.uniform();
    const ValueId self = pick();
    const auto& sizes = net.made.value(self).sizes;
    if (what < 0.1f) {
      tensors.push_back(
          net.op("aten.zeros.default", {{"size", program::List{int64_t{kLength}}}}, {kLength}));
    } else if (what < 0.25f) {
      const int64_t length = sizes[0].number();
      const auto start = static_cast<int64_t>(random.below(static_cast<uint32_t>(length)));
      tensors.push_back(
          net.op("aten.slice.Tensor",
                 {net.self(self), {"dim", int64_t{0}}, {"start", start}, {"end", length}},
                 {length - start}));
    } else {
      const bool adds = random.uniform() < 0.5f;
      const bool in_place = random.uniform() < share_in_place;
      const std::string target =
          std::string("aten.") + (adds ? "add" : "mul") + (in_place ? "_" : "") + ".Tensor";
      // Parameters are not changed by programs.
      if (in_place && self == 2) continue;
      tensors.push_back(net.op(target, {net.self(self), {"other", Reference{pick()}}}, sizes));
    }
  }
  const ValueId x = net.add(tensors.back(), 0);
  return net.finish({{"last", x}});
}

// The values of the outputs and of the states.
std::vector<std::vector<uint32_t>> run_whole(const Program& program) {
  Registers registers;
  for (const program::Port& input : program.inputs) registers[input.value] = start_of(input.value);
  for (const program::State& state : program.state) registers[state.value] = start_of(state.value);
  std::vector<int> all(program.ops.size());
  std::iota(all.begin(), all.end(), 0);
  run(program, all, registers);
  std::vector<std::vector<uint32_t>> results;
  for (const program::Port& output : program.outputs)
    results.push_back(registers.at(output.value).values());
  for (const program::State& state : program.state)
    results.push_back(registers.at(state.value).values());
  return results;
}

std::vector<std::vector<uint32_t>> run_in_parts(const Lowered& lowered, Random& random) {
  const Program& program = lowered.program;
  std::vector<std::vector<OpIndex>> parts(1);
  for (size_t op = 0; op < lowered.graph.ops.size(); ++op) {
    if (!parts.back().empty() && random.uniform() < 0.5f) parts.emplace_back();
    parts.back().push_back(static_cast<OpIndex>(op));
  }
  Registers sent;
  for (const program::Port& input : program.inputs) sent[input.value] = start_of(input.value);
  Registers states;  // as who changed them has left them
  for (const program::State& state : program.state) states[state.value] = start_of(state.value);
  for (const auto& ops : parts) {
    const Part part = part_of(lowered, ops);
    Registers registers;
    for (const ValueIndex input : part.inputs) {
      const ValueId value = lowered.values[static_cast<size_t>(input)];
      registers[value] = copy_of(sent.at(value));
    }
    for (const ParameterIndex parameter : part.parameters) {
      const ValueId value = program.state[static_cast<size_t>(parameter)].value;
      registers[value] = start_of(value);
    }
    run(program, part.ops, registers);
    for (const OpIndex op : ops)
      for (const ValueIndex output : lowered.graph.ops[static_cast<size_t>(op)].outputs) {
        const ValueId value = lowered.values[static_cast<size_t>(output)];
        sent[value] = copy_of(registers.at(value));
      }
    for (const ParameterIndex parameter : part.parameters) {
      const ValueId value = program.state[static_cast<size_t>(parameter)].value;
      if (registers.at(value).values() != start_of(value).values())
        states[value] = registers.at(value);
    }
  }
  std::vector<std::vector<uint32_t>> results;
  for (const program::Port& output : program.outputs)
    results.push_back(sent.at(output.value).values());
  for (const program::State& state : program.state)
    results.push_back(states.at(state.value).values());
  return results;
}

TEST(Parts, OfRandomProgramsComputeTheSameAsTheWhole) {
  size_t cuts = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    Random random(1, RandomUse::random_input, 0, seed);
    const Program program = random_program(random);
    const Lowered lowered = lower(program, 1);
    cuts += lowered.graph.ops.size() - 1;
    ASSERT_EQ(run_in_parts(lowered, random), run_whole(program)) << "seed " << seed;
  }
  EXPECT_GT(cuts, 4000u);  // and there is something to cut
}

TEST(Parts, TogetherHaveEachOperationOnce) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Random random(1, RandomUse::random_input, 1, seed);
    const Lowered lowered = lower(random_program(random), 1);
    std::vector<int> all = lowered.common;
    for (const auto& ops : lowered.ops) all.insert(all.end(), ops.begin(), ops.end());
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), lowered.program.ops.size());
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int>(i));
  }
}

}  // namespace
}  // namespace renkei::graph
