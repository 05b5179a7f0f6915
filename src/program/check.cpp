// What must hold in every program, whoever wrote it.
#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "program/expression.h"
#include "program/program.h"

namespace renkei::program {
namespace {

constexpr int kDeepestList = 16;

class Checker {
 public:
  Checker(const Program& program, const std::string& source)
      : program_(program), source_(source), made_(program.values.size()) {}

  void run() {
    check_symbols();
    check_values();
    check_state();
    check_inputs();
    for (size_t i = 0; i < program_.ops.size(); ++i) check_op(i);
    check_outputs();
  }

 private:
  [[noreturn]] void refuse(const std::string& place, std::string_view what) const {
    throw Error(ErrorCode::data, fmt::format("{}: {} {}", source_, place, what));
  }

  void check_symbols() {
    int batches = 0;
    for (const Symbol& symbol : program_.symbols) {
      const std::string place = fmt::format("the symbol \"{}\"", symbol.name);
      if (symbol.name.empty()) refuse(place, "has no name");
      if (!symbols_.insert(symbol.name).second) refuse(place, "is there twice");
      if (symbol.low < 0 || symbol.low > symbol.high)
        refuse(place, fmt::format("has the range {} to {}", symbol.low, symbol.high));
      check_is_name(symbol.name, place);
      batches += symbol.batch ? 1 : 0;
    }
    if (batches > 1) refuse("more than one symbol", "is the batch");
  }

  void check_is_name(const std::string& name, const std::string& place) const {
    try {
      if (parse_expression(name).kind == Expression::Kind::name) return;
    } catch (const Error&) {  // said below
    }
    refuse(place, "is not a name: letters, digits and _ are");
  }

  void check_values() const {
    for (size_t i = 0; i < program_.values.size(); ++i) {
      const Value& value = program_.values[i];
      const std::string place = fmt::format("the value {} ({})", i, value.name);
      if (value.kind != ValueKind::tensor && !value.sizes.empty())
        refuse(place, "is one number, but has sizes");
      for (const Size& size : value.sizes) check_size(size, place);
    }
  }

  void check_size(const Size& size, const std::string& place) const {
    if (size.is_number()) {
      if (size.number() < 0) refuse(place, fmt::format("has the negative size {}", size.number()));
      return;
    }
    check_symbols_of(parse_expression(size.text()), place);
  }

  void check_symbols_of(const Expression& expression, const std::string& place) const {
    if (expression.kind == Expression::Kind::name && !symbols_.contains(expression.name))
      refuse(place, fmt::format("has a size that depends on {}, which is not among the symbols",
                                expression.name));
    for (const Expression& part : expression.parts) check_symbols_of(part, place);
  }

  void check_id(ValueId id, const std::string& place) const {
    if (id < 0 || static_cast<size_t>(id) >= program_.values.size())
      refuse(place,
             fmt::format("refers to the value {}, but there are {}", id, program_.values.size()));
  }

  void make(ValueId id, const std::string& place) {
    check_id(id, place);
    if (made_[static_cast<size_t>(id)])
      refuse(place,
             fmt::format("makes the value {} ({}) a second time", id, program_.value(id).name));
    made_[static_cast<size_t>(id)] = true;
  }

  void use(ValueId id, const std::string& place) const {
    check_id(id, place);
    if (!made_[static_cast<size_t>(id)])
      refuse(place,
             fmt::format("uses the value {} ({}) before it is made", id, program_.value(id).name));
  }

  void check_state() {
    std::set<std::string_view> names;
    StateKind before = StateKind::parameter;
    for (const State& state : program_.state) {
      const std::string place = fmt::format("the state \"{}\"", state.name);
      const auto take = [&](const std::string& name) {
        if (name.empty()) refuse(place, "has an empty name");
        if (!names.insert(name).second)
          refuse(place, fmt::format("has the name \"{}\", which is taken", name));
      };
      take(state.name);
      for (const std::string& alias : state.aliases) take(alias);
      if (state.kind < before) refuse(place, "comes after one of a later kind");
      before = state.kind;
      make(state.value, place);
      const Value& value = program_.value(state.value);
      if (value.kind != ValueKind::tensor) refuse(place, "is not a tensor");
      for (const Size& size : value.sizes)
        if (!size.is_number()) refuse(place, fmt::format("has the size {}", size.str()));
    }
  }

  void check_inputs() {
    std::set<std::string_view> names;
    for (const Port& input : program_.inputs) {
      const std::string place = fmt::format("the input \"{}\"", input.name);
      check_port(input, names, place);
      make(input.value, place);
    }
  }

  void check_outputs() const {
    std::set<std::string_view> names;
    for (const Port& output : program_.outputs) {
      const std::string place = fmt::format("the output \"{}\"", output.name);
      check_port(output, names, place);
      use(output.value, place);
    }
  }

  void check_port(const Port& port, std::set<std::string_view>& names,
                  const std::string& place) const {
    if (port.name.empty()) refuse(place, "has no name");
    if (!names.insert(port.name).second) refuse(place, "is there twice");
  }

  void check_op(size_t index) {
    const Op& op = program_.ops[index];
    const std::string place = fmt::format("the operation {} ({})", index, op.target);
    if (op.target.empty()) refuse(place, "has no target");
    std::set<std::string_view> names;
    for (const NamedArgument& argument : op.arguments) {
      if (argument.name.empty()) refuse(place, "has an argument without a name");
      if (!names.insert(argument.name).second)
        refuse(place, fmt::format("has the argument {} twice", argument.name));
      check_argument(argument.value, place, 0);
    }
    for (const ValueId output : op.outputs)
      if (output != kNoValue) make(output, place);
  }

  void check_argument(const Argument& argument, const std::string& place, int depth) const {
    if (const auto* reference = std::get_if<Reference>(&argument)) use(reference->value, place);
    const auto* list = std::get_if<List>(&argument);
    if (!list) return;
    if (depth == kDeepestList) refuse(place, "has lists in lists, too deep");
    for (const Argument& item : *list) check_argument(item, place, depth + 1);
  }

  const Program& program_;
  const std::string& source_;
  std::vector<bool> made_;
  std::set<std::string_view> symbols_;
};

}  // namespace

void check(const Program& program, const std::string& source) {
  Checker(program, source).run();
}

}  // namespace renkei::program
