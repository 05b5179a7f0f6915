#include "program/print.h"

#include <fmt/format.h>

#include <unordered_map>

namespace renkei::program {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {
    for (const State& state : program.state) names_[state.value] = state.name;
    for (const Port& input : program.inputs) names_[input.value] = "%" + input.name;
  }

  std::string line(const Op& op) const {
    std::string text = outputs(op) + target(op.target) + "(" + arguments(op) + ")";
    const std::string where = op.module.empty() || op.source.empty() ? op.module + op.source
                                                                     : op.module + ", " + op.source;
    if (op.no_grad)
      text += "  # no_grad" + (where.empty() ? "" : ", " + where);
    else if (!where.empty())
      text += "  # " + where;
    return text;
  }

  std::string name(ValueId id) const {
    if (id == kNoValue) return "_";
    const auto found = names_.find(id);
    return found != names_.end() ? found->second : fmt::format("%{}", id);
  }

 private:
  std::string outputs(const Op& op) const {
    std::string text;
    for (const ValueId id : op.outputs) {
      text += (text.empty() ? "" : ", ") + name(id);
      if (id != kNoValue) text += " " + print(program_.value(id));
    }
    return text.empty() ? text : text + " = ";
  }

  static std::string target(std::string_view name) {
    if (name.ends_with(".default")) name.remove_suffix(8);
    return std::string(name);
  }

  // What is given comes first and without a name, settings have theirs.
  std::string arguments(const Op& op) const {
    std::string text;
    bool given = true;
    for (const NamedArgument& argument : op.arguments) {
      given &= std::holds_alternative<Reference>(argument.value);
      if (!text.empty()) text += ", ";
      if (!given) text += argument.name + "=";
      text += print_argument(argument.value);
    }
    return text;
  }

  std::string print_argument(const Argument& argument) const {
    struct Writer {
      const Printer& printer;
      std::string operator()(None) const { return "none"; }
      std::string operator()(Reference reference) const { return printer.name(reference.value); }
      std::string operator()(bool value) const { return value ? "true" : "false"; }
      std::string operator()(int64_t value) const { return fmt::format("{}", value); }
      std::string operator()(double value) const {
        std::string text = fmt::format("{}", value);
        return text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;
      }
      std::string operator()(const std::string& value) const { return "\"" + value + "\""; }
      std::string operator()(DType value) const { return std::string(name_of(value)); }
      std::string operator()(const Word& value) const { return value.text; }
      std::string operator()(const List& list) const {
        std::string text;
        for (const Argument& item : list)
          text += (text.empty() ? "" : ", ") + printer.print_argument(item);
        return "[" + text + "]";
      }
    };
    return std::visit(Writer{*this}, static_cast<const Argument::variant&>(argument));
  }

  const Program& program_;
  std::unordered_map<ValueId, std::string> names_;
};

std::string print(const Symbol& symbol) {
  std::string text = symbol.name;
  if (symbol.high == INT64_MAX)
    text += fmt::format(" from {}", symbol.low);
  else
    text += fmt::format(" from {} to {}", symbol.low, symbol.high);
  return text + (symbol.batch ? ", the batch" : "");
}

}  // namespace

std::string print(const Value& value) {
  if (value.kind == ValueKind::integer) return "integer";
  if (value.kind == ValueKind::real) return "real";
  if (value.kind == ValueKind::boolean) return "boolean";
  std::string sizes;
  for (const Size& size : value.sizes) sizes += (sizes.empty() ? "" : ", ") + size.str();
  return fmt::format("{}[{}]", name_of(value.dtype), sizes);
}

std::string print(const Program& program, const Op& op) {
  return Printer(program).line(op);
}

std::string print(const Program& program) {
  const Printer printer(program);
  std::string text = fmt::format("program {}\n", program.name);
  for (const Symbol& symbol : program.symbols) text += "size    " + print(symbol) + "\n";
  for (const Port& input : program.inputs)
    text += fmt::format("input   {} {}\n", printer.name(input.value),
                        print(program.value(input.value)));
  for (const Op& op : program.ops) text += printer.line(op) + "\n";
  for (const Port& output : program.outputs)
    text += fmt::format("output  {} = {}\n", output.name, printer.name(output.value));
  return text;
}

}  // namespace renkei::program
