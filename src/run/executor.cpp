#include "run/executor.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "program/effects.h"
#include "run/argument_values.h"
#include "run/kernels/registry.h"
#include "run/random_ops.h"
#include "run/size_ops.h"

namespace renkei::run {

using program::Op;
using program::Program;
using program::ValueId;

Part whole(const Program& program) {
  Part part;
  for (size_t i = 0; i < program.ops.size(); ++i) part.ops.push_back(static_cast<int>(i));
  for (const program::Port& output : program.outputs) part.outputs.push_back(output.value);
  return part;
}

namespace {

using Register = int;
constexpr Register kNoRegister = -1;

std::string place_of(const Op& op) {
  std::string where = op.module.empty() ? op.source : op.module;
  if (!op.module.empty() && !op.source.empty()) where += ", " + op.source;
  return where.empty() ? op.target : fmt::format("{} ({})", op.target, where);
}

// "aten.conv2d.default" is aten::conv2d without an overload name.
c10::OperatorHandle find_operator(const Op& op) {
  const size_t first = op.target.find('.'), last = op.target.rfind('.');
  if (first == std::string::npos || first == last)
    throw Error(ErrorCode::data, fmt::format("{} is not the name of an operation", op.target));
  const std::string name =
      op.target.substr(0, first) + "::" + op.target.substr(first + 1, last - first - 1);
  const std::string overload = op.target.substr(last + 1);
  auto found = c10::Dispatcher::singleton().findSchema(
      {name, overload == "default" ? std::string() : overload});
  if (!found)
    throw Error(ErrorCode::data,
                fmt::format("{}: this PyTorch has no operation {}", place_of(op), name),
                "it may belong to a library of operators that Renkei does not load");
  return *found;
}

}  // namespace

struct Executor::Code {
  struct Instruction {
    std::string place;
    std::optional<c10::OperatorHandle> operation;  // none: arithmetic on sizes
    std::optional<SizeOp> size_op;
    std::vector<ArgumentValue> arguments;  // with registers in the place of values
    std::vector<Register> outputs;
    std::vector<Register> last_uses;
    bool returns_list = false;
    bool no_grad = false;
    bool normalises_by_batch = false;
    int draws_as = -1;      // the number of an operation that draws
    int generator_at = -1;  // its argument for a generator
    int context_at = -1;    // the argument for the ExecutionContext
  };

  std::vector<Instruction> instructions;
  std::vector<std::pair<Register, program::Size>> sizes;
  std::string batch_symbol;
  std::vector<Register> inputs, state, outputs;
  int registers = 0;

  // --- compilation ---

  Register register_of(ValueId value) {
    const auto [found, is_new] = register_of_.try_emplace(value, registers);
    if (is_new) ++registers;
    return found->second;
  }

  ArgumentValue with_registers(ArgumentValue argument) {
    if (argument.kind == ArgumentValue::Kind::value) argument.value = register_of(argument.value);
    for (auto& element : argument.list)
      if (element.value != program::kNoValue) element.value = register_of(element.value);
    return argument;
  }

  // The number of a drawing operation counts those before it in the whole program, so that rewrites
  // of others do not change what it draws.
  int drawing_before(const Program& program, int number) {
    for (; counted_ < number; ++counted_)
      drawing_ += program::draws(program.ops[static_cast<size_t>(counted_)]);
    return drawing_;
  }

  Instruction compile(const Program& program, int number) {
    const Op& op = program.ops[static_cast<size_t>(number)];
    Instruction made{.place = place_of(op), .no_grad = op.no_grad};
    // Ours looks at its samples itself, where ranks may be normalised together.
    made.normalises_by_batch = op.target.starts_with("aten.") && program::normalises_by_batch(op);
    made.size_op = size_op_of(op.target);
    if (made.size_op) {
      for (const program::NamedArgument& argument : op.arguments)
        made.arguments.push_back(with_registers(size_argument(argument.value, made.place)));
    } else {
      compile_call(op, made);
    }
    if (program::draws(op)) made.draws_as = drawing_before(program, number);
    for (const ValueId output : op.outputs)
      made.outputs.push_back(output == program::kNoValue ? kNoRegister : register_of(output));
    return made;
  }

  void compile_call(const Op& op, Instruction& made) {
    made.operation = find_operator(op);
    const c10::FunctionSchema& schema = made.operation->schema();
    std::set<std::string_view> known;
    for (const c10::Argument& expected : schema.arguments()) {
      known.insert(expected.name());
      const auto at = static_cast<int>(made.arguments.size());
      if (expected.name() == "generator") made.generator_at = at;
      if (expected.name() == "context" && op.target.starts_with("renkei.")) made.context_at = at;
      if (const program::Argument* given = program::find_argument(op, expected.name()))
        made.arguments.push_back(with_registers(argument_value(*given, expected, made.place)));
      else if (expected.default_value())
        made.arguments.push_back({.constant = *expected.default_value()});
      else if (expected.type()->kind() == c10::TypeKind::OptionalType)
        made.arguments.push_back({});
      else
        throw Error(ErrorCode::data,
                    fmt::format("{}: the argument {} is missing", made.place, expected.name()));
    }
    for (const program::NamedArgument& argument : op.arguments)
      if (!known.contains(argument.name))
        throw Error(ErrorCode::data,
                    fmt::format("{} has no argument {} in this PyTorch", made.place, argument.name),
                    "export the model again with the PyTorch that Renkei runs with");
    made.returns_list = schema.returns().size() == 1 &&
                        schema.returns()[0].type()->kind() == c10::TypeKind::ListType;
  }

  void find_last_uses() {
    std::set<Register> kept(outputs.begin(), outputs.end());
    for (auto at = instructions.rbegin(); at != instructions.rend(); ++at) {
      const auto use = [&](Register used) {
        if (used != kNoRegister && kept.insert(used).second) at->last_uses.push_back(used);
      };
      for (const ArgumentValue& argument : at->arguments) {
        if (argument.kind == ArgumentValue::Kind::value) use(argument.value);
        for (const auto& element : argument.list) use(element.value);
      }
      for (const Register output : at->outputs) use(output);  // nobody reads it
    }
  }

  // --- running ---

  using Registers = std::vector<c10::IValue>;

  static c10::IValue value_of(const ArgumentValue& argument, const Registers& values) {
    const auto at = [&](Register r) -> const c10::IValue& {
      return values[static_cast<size_t>(r)];
    };
    switch (argument.kind) {
      case ArgumentValue::Kind::constant:
        return argument.constant;
      case ArgumentValue::Kind::value:
        if (argument.tensor && at(argument.value).isScalar())
          return number_as_tensor(at(argument.value).toScalar());
        return at(argument.value);
      case ArgumentValue::Kind::tensors: {
        c10::List<at::Tensor> list;
        list.reserve(argument.list.size());
        for (const auto& element : argument.list) list.push_back(at(element.value).toTensor());
        return list;
      }
      case ArgumentValue::Kind::optional_tensors: {
        c10::List<std::optional<at::Tensor>> list;
        for (const auto& element : argument.list)
          list.push_back(element.value == kNoRegister
                             ? std::nullopt
                             : std::optional(at(element.value).toTensor()));
        return list;
      }
      case ArgumentValue::Kind::integers: {
        std::vector<int64_t> list;
        for (const auto& element : argument.list)
          list.push_back(element.value == kNoRegister ? element.number : at(element.value).toInt());
        return list;
      }
    }
    return {};
  }

  static void call(const Instruction& instruction, Registers& values, ExecutionContext& context) {
    Stack stack;
    stack.reserve(instruction.arguments.size());
    for (const ArgumentValue& argument : instruction.arguments)
      stack.push_back(value_of(argument, values));
    if (instruction.normalises_by_batch && stack[0].isTensor()) {
      const at::Tensor& input = stack[0].toTensor();
      context.batch_norm.check_values(static_cast<double>(input.numel()) /
                                      static_cast<double>(std::max<int64_t>(1, input.size(1))));
    }
    if (instruction.size_op) {
      stack = {evaluate(*instruction.size_op, stack, instruction.place)};
    } else {
      if (instruction.context_at >= 0)
        stack[static_cast<size_t>(instruction.context_at)] = context.as_argument();
      if (instruction.draws_as >= 0 && instruction.context_at >= 0) {
        context.operation_seed = seed_of(context.random, instruction.draws_as);
        instruction.operation->callBoxed(stack);
      } else if (instruction.draws_as >= 0 && !context.draws_as_torch)
        draw(*instruction.operation, stack, instruction.generator_at,
             seed_of(context.random, instruction.draws_as));
      else
        instruction.operation->callBoxed(stack);
    }
    store(instruction, stack, values);
  }

  static void store(const Instruction& instruction, Stack& results, Registers& values) {
    if (instruction.returns_list) {
      const std::vector<at::Tensor> list = results.front().toTensorVector();
      results.assign(list.begin(), list.end());
    }
    const size_t count = std::min(results.size(), instruction.outputs.size());
    for (size_t i = 0; i < count; ++i)
      if (instruction.outputs[i] != kNoRegister)
        values[static_cast<size_t>(instruction.outputs[i])] = std::move(results[i]);
  }

 private:
  int counted_ = 0, drawing_ = 0;  // operations looked at so far, and those of them that draw
  std::unordered_map<ValueId, Register> register_of_;
};

Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

Executor::Executor(const Program& program, const Part& part)
    : outputs_(part.outputs), code_(std::make_unique<Code>()) {
  kernels::load();
  std::unordered_map<ValueId, int> state_of;
  for (size_t i = 0; i < program.state.size(); ++i)
    state_of[program.state[i].value] = static_cast<int>(i);
  std::unordered_map<ValueId, const program::Size*> size_of;
  for (const KnownSize& known : part.sizes) size_of[known.value] = &known.size;
  std::set<ValueId> made, from_outside, sizes;
  std::set<int> state;
  const auto use = [&](ValueId value) {
    if (made.contains(value)) return;
    if (const auto found = state_of.find(value); found != state_of.end())
      state.insert(found->second);
    else if (size_of.contains(value))
      sizes.insert(value);
    else
      from_outside.insert(value);
  };
  for (const int number : part.ops) {
    const Op& op = program.ops[static_cast<size_t>(number)];
    for (const ValueId value : program::references(op)) use(value);
    made.insert(op.outputs.begin(), op.outputs.end());
  }
  for (const ValueId output : outputs_) use(output);
  inputs_.assign(from_outside.begin(), from_outside.end());
  state_.assign(state.begin(), state.end());

  Code& code = *code_;
  code.batch_symbol = program::batch_symbol(program);
  for (const ValueId input : inputs_) code.inputs.push_back(code.register_of(input));
  for (const int s : state_)
    code.state.push_back(code.register_of(program.state[static_cast<size_t>(s)].value));
  for (const ValueId size : sizes)
    code.sizes.emplace_back(code.register_of(size), *size_of.at(size));
  for (const int number : part.ops) code.instructions.push_back(code.compile(program, number));
  for (const ValueId output : outputs_) code.outputs.push_back(code.register_of(output));
  code.find_last_uses();
}

std::vector<torch::Tensor> Executor::run(std::span<const torch::Tensor> inputs,
                                         std::span<const torch::Tensor> state, int64_t samples,
                                         ExecutionContext& context) const {
  const Code& code = *code_;
  Code::Registers values(static_cast<size_t>(code.registers));
  const auto fill = [&](const std::vector<Register>& registers, auto tensors) {
    for (size_t i = 0; i < registers.size(); ++i)
      values[static_cast<size_t>(registers[i])] = tensors[i];
  };
  fill(code.inputs, inputs);
  fill(code.state, state);
  const program::SymbolValues symbols{{code.batch_symbol, samples}};
  for (const auto& [place, size] : code.sizes)
    values[static_cast<size_t>(place)] = size.value(symbols);
  for (const Code::Instruction& instruction : code.instructions) {
    try {
      if (instruction.no_grad) {
        const torch::NoGradGuard no_grad;
        Code::call(instruction, values, context);
      } else {
        Code::call(instruction, values, context);
      }
    } catch (const c10::Error& error) {
      throw Error(ErrorCode::data,
                  fmt::format("{} failed: {}", instruction.place, error.what_without_backtrace()));
    }
    for (const Register used : instruction.last_uses) values[static_cast<size_t>(used)] = {};
  }
  std::vector<torch::Tensor> outputs;
  for (const Register output : code.outputs)
    outputs.push_back(values[static_cast<size_t>(output)].toTensor());
  return outputs;
}

}  // namespace renkei::run
