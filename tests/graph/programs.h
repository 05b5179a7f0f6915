// Programs made by hand.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"

namespace renkei::test {

using program::ValueId;

inline program::Size batch() {
  return program::Size::expression("batch");
}

class HandMade {
 public:
  using Sizes = std::vector<program::Size>;
  using Arguments = std::vector<program::NamedArgument>;

  HandMade() { made.symbols = {{.name = "batch", .low = 1, .high = 1 << 20, .batch = true}}; }

  ValueId value(Sizes sizes, program::DType dtype = program::DType::f32,
                program::ValueKind kind = program::ValueKind::tensor) {
    const auto id = static_cast<ValueId>(made.values.size());
    made.values.push_back({.name = "value" + std::to_string(id),
                           .kind = kind,
                           .dtype = dtype,
                           .sizes = std::move(sizes)});
    return id;
  }
  ValueId input(const std::string& name, Sizes sizes, program::DType dtype = program::DType::f32) {
    made.inputs.push_back({name, value(std::move(sizes), dtype)});
    return made.inputs.back().value;
  }
  ValueId state(const std::string& name, Sizes sizes,
                program::StateKind kind = program::StateKind::parameter,
                program::DType dtype = program::DType::f32) {
    made.state.push_back({.name = name, .kind = kind, .value = value(std::move(sizes), dtype)});
    return made.state.back().value;
  }
  ValueId buffer(const std::string& name, Sizes sizes) {
    return state(name, std::move(sizes), program::StateKind::buffer);
  }

  // One operation with one result.
  ValueId op(const std::string& target, Arguments arguments, Sizes sizes,
             program::DType dtype = program::DType::f32) {
    const ValueId output = value(std::move(sizes), dtype);
    made.ops.push_back({.target = target, .arguments = std::move(arguments), .outputs = {output}});
    return output;
  }
  ValueId integer(const std::string& target, Arguments arguments) {
    const ValueId output = value({}, program::DType::i64, program::ValueKind::integer);
    made.ops.push_back({.target = target, .arguments = std::move(arguments), .outputs = {output}});
    return output;
  }
  // As many values in as out: the size of a batch of `features`.
  ValueId relu(ValueId x) { return op("aten.relu.default", {self(x)}, made.value(x).sizes); }
  ValueId relu_(ValueId x) { return op("aten.relu_.default", {self(x)}, made.value(x).sizes); }
  ValueId add(ValueId x, ValueId y) {
    return op("aten.add.Tensor", {self(x), {"other", program::Reference{y}}}, made.value(x).sizes);
  }
  ValueId linear(const std::string& name, ValueId x, int64_t in, int64_t out) {
    const ValueId weight = state(name + ".weight", {out, in});
    return linear(x, weight, out);
  }
  ValueId linear(ValueId x, ValueId weight, int64_t out) {
    return op("aten.linear.default",
              {{"input", program::Reference{x}}, {"weight", program::Reference{weight}}},
              {batch(), out});
  }
  static program::NamedArgument self(ValueId x) { return {"self", program::Reference{x}}; }

  program::Program finish(std::vector<program::Port> outputs) {
    made.name = "net";
    made.outputs = std::move(outputs);
    std::ranges::stable_sort(made.state, {}, &program::State::kind);
    check(made, "test");
    return made;
  }

  program::Program made;
};

}  // namespace renkei::test
