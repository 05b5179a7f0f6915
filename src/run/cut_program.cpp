#include "run/cut_program.h"

#include <algorithm>

#include "base/error.h"

namespace renkei::run {

CutProgram::CutProgram(const program::Program& program, int64_t samples)
    : lowered_(graph::lower(program, samples)) {
  for (const program::ValueId id : lowered_.values) {
    const auto& sizes = lowered_.program.value(id).sizes;
    const auto depends_on = [&](const program::Symbol& symbol) {
      return !symbol.batch && std::ranges::any_of(sizes, [&](const program::Size& size) {
        return size.mentions(symbol.name);
      });
    };
    open_sizes_.push_back(std::ranges::any_of(lowered_.program.symbols, depends_on));
  }
  // Of these an export knows the most that there can be, and says that it is so much.
  for (const program::Op& op : lowered_.program.ops)
    if (op.target.starts_with("aten._pack_padded_sequence."))
      for (const program::ValueId output : op.outputs)
        if (const auto found = std::ranges::find(lowered_.values, output);
            found != lowered_.values.end())
          open_sizes_[static_cast<size_t>(found - lowered_.values.begin())] = true;
}

Executor CutProgram::executor(const std::vector<graph::OpIndex>& ops,
                              const std::vector<graph::ValueIndex>& outputs) const {
  Part part{.ops = graph::part_of(lowered_, ops).ops, .outputs = {}};
  for (const graph::KnownSize& known : lowered_.sizes)
    part.sizes.push_back({known.value, known.size});
  for (const graph::ValueIndex output : outputs)
    part.outputs.push_back(lowered_.values[static_cast<size_t>(output)]);
  return {program(), part};
}

std::vector<graph::ValueIndex> CutProgram::inputs_of(const Executor& executor) const {
  std::vector<graph::ValueIndex> list;
  for (const program::ValueId input : executor.inputs()) {
    const auto found = std::ranges::find(lowered_.values, input);
    if (found == lowered_.values.end())
      throw Error(ErrorCode::bug, "a part of the network needs a value that can't cross a cut");
    list.push_back(static_cast<graph::ValueIndex>(found - lowered_.values.begin()));
  }
  return list;
}

std::vector<int64_t> CutProgram::shape(graph::ValueIndex value, int64_t samples) const {
  return program::sizes_of(value_of(value), program::with_batch(program(), samples));
}

torch::ScalarType CutProgram::dtype(graph::ValueIndex value) const {
  return scalar_type(value_of(value).dtype);
}

std::string_view CutProgram::input_name(graph::ValueIndex value) const {
  for (const program::Port& input : program().inputs)
    if (input.value == lowered_.values[static_cast<size_t>(value)]) return input.name;
  return {};
}

}  // namespace renkei::run
