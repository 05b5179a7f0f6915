// Operators that only wrap a part of the graph are dissolved: torch.no_grad() becomes a mark of the
// operations inside, checkpoints are the planner's to decide. What the tracer noted for itself
// (metadata of tensors, ranges of sizes) is left out; assertions about values stay.
#include "capture/pt2_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "capture/origin.h"

namespace renkei::capture {
namespace {

using program::Argument;
using program::kNoValue;
using program::ValueId;
using program::ValueKind;

constexpr std::string_view kOps = "torch.ops.", kHigherOrder = "torch.ops.higher_order.";

constexpr std::array<std::string_view, 5> kLeftOut{
    "aten._assert_tensor_metadata.default", "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default", "aten._functional_sym_constrain_range.default",
    "aten._functional_sym_constrain_range_for_size.default"};

// "torch.ops.aten.relu.default" → "aten.relu.default", "_operator.mul" → "operator.mul",
// "torch.sym_max" → "operator.sym_max". Empty: it is none of these.
std::string short_target(std::string_view target) {
  if (target.starts_with(kOps)) return std::string(target.substr(kOps.size()));
  for (const std::string_view arithmetic : {"_operator.", "math."})
    if (target.starts_with(arithmetic))
      return fmt::format("operator.{}", target.substr(arithmetic.size()));
  for (const std::string_view symbolic : {"torch.sym_", "torch._sym_"})
    if (target.starts_with(symbolic))
      return fmt::format("operator.sym_{}", target.substr(symbolic.size()));
  return {};
}

// Results that nobody uses are called "batch_norm_unused_1".
bool is_unused(std::string_view name) {
  const size_t at = name.rfind("_unused_");
  if (at == std::string_view::npos) return false;
  const std::string_view number = name.substr(at + 8);
  return !number.empty() && number.find_first_not_of("0123456789_") == std::string_view::npos;
}

std::string metadata(const json& node, std::string_view name) {
  const json* all = find_field(node, "metadata");
  const json* found = all ? find_field(*all, name) : nullptr;
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

// What a wrapping operator does: where in its arguments the graph is, and what holds inside.
struct Wrapper {
  size_t graph = 0;     // position of the graph among the arguments
  size_t operands = 0;  // position of the first that is given to it
  bool no_grad = false;
};

std::optional<Wrapper> wrapper_of(std::string_view name, const json& inputs, bool no_grad,
                                  const Place& place) {
  const auto flag = [&](size_t index) {
    if (index >= inputs.size()) place.refuse("an argument is missing");
    const json& argument = field(inputs[index], "arg", place);
    return boolean_of(field(argument, "as_bool", place), "enabled", place);
  };
  if (name == "wrap_with_set_grad_enabled")
    return Wrapper{.graph = 1, .operands = 2, .no_grad = !flag(0)};
  if (name == "wrap_with_autocast") {
    if (flag(2))
      place.refuse("torch.autocast is part of the model",
                   "export the model without it, and train with --precision bf16");
    return Wrapper{.graph = 4, .operands = 5, .no_grad = no_grad};
  }
  if (name == "invoke_subgraph") return Wrapper{.operands = 2, .no_grad = no_grad};
  if (name == "tag_activation_checkpoint" || name == "wrap_activation_checkpoint" || name == "wrap")
    return Wrapper{.operands = 1, .no_grad = no_grad};
  return {};
}

// The tensors and numbers among the results of a node or graph, with those in lists.
std::vector<json> flattened(const json& arguments, const Place& place) {
  std::vector<json> flat;
  for (const json& argument : list_of(arguments, "outputs", place)) {
    const auto [tag, value] = tagged(argument, "output", place);
    if (tag != "as_tensors") {
      flat.push_back(argument);
      continue;
    }
    for (const json& one : list_of(value, "outputs", place))
      flat.push_back(json{{"as_tensor", one}});
  }
  return flat;
}

// The name in {"as_tensor": {"name": …}} or {"as_sym_int": {"as_name": …}}; empty: there is none.
std::string name_in(const json& argument, const Place& place) {
  const auto [tag, value] = tagged(argument, "output", place);
  for (const std::string_view key : {"name", "as_name"})
    if (const json* name = find_field(value, key)) return text_of(*name, "name", place);
  return {};
}

}  // namespace

ValueId GraphReader::add_value(program::Value value) {
  // Graphs inside of others may repeat names.
  const std::string name = value.name;
  while (names_[value.name]++ > 0) value.name = fmt::format("{}_{}", name, names_[name]);
  program_.values.push_back(std::move(value));
  return static_cast<ValueId>(program_.values.size() - 1);
}

ValueId GraphReader::add_tensor(const json& graph, const std::string& name, const Place& place) {
  const json* described = find_field(field(graph, "tensor_values", place), name);
  if (!described) place.refuse(fmt::format("nothing is said about the tensor '{}'", name));
  check_strided(field(*described, "layout", place), name, place);
  program::Value value{.name = name,
                       .dtype = dtype_of(field(*described, "dtype", place), name, place)};
  for (const json& size : list_of(field(*described, "sizes", place), "sizes", place))
    value.sizes.push_back(symbols_.size(size, place));
  return add_value(std::move(value));
}

ValueId GraphReader::add_number(const std::string& name, ValueKind kind) {
  using program::DType;
  const DType dtype = kind == ValueKind::integer ? DType::i64
                      : kind == ValueKind::real  ? DType::f64
                                                 : DType::boolean;
  return add_value({.name = name, .kind = kind, .dtype = dtype});
}

void GraphReader::read_nodes(const json& graph, Scope& scope, bool no_grad) {
  for (const json& node : list_of(field(graph, "nodes", file_), "nodes", file_))
    read_node(node, graph, scope, no_grad);
}

void GraphReader::read_node(const json& content, const json& graph, Scope& scope, bool no_grad) {
  const std::string target = text_of(field(content, "target", file_), "target", file_);
  const std::string source = source_from_trace(metadata(content, "stack_trace"));
  Node node{.content = content,
            .graph = graph,
            .target = short_target(target),
            .module = module_from_stack(metadata(content, "nn_module_stack")),
            .source = source,
            .place = file_.at(source.empty() ? target : fmt::format("{} ({})", target, source)),
            .no_grad = no_grad};
  if (target.starts_with(kHigherOrder)) return inline_graph(node, scope);
  if (node.target.empty())
    node.place.refuse("this is a Python function, not an operator",
                      "rewrite this line of the model with PyTorch's operators");
  if (std::find(kLeftOut.begin(), kLeftOut.end(), node.target) != kLeftOut.end()) return;
  add_op(node, scope);
}

void GraphReader::add_op(const Node& node, Scope& scope) {
  program::Op op{
      .target = node.target, .module = node.module, .source = node.source, .no_grad = node.no_grad};
  for (const json& input :
       list_of(field(node.content, "inputs", node.place), "inputs", node.place)) {
    const std::string name = text_of(field(input, "name", node.place), "name", node.place);
    op.arguments.push_back(
        {name, read_argument(field(input, "arg", node.place), name, scope, node.place)});
  }
  for (const json& output : flattened(field(node.content, "outputs", node.place), node.place))
    add_outputs(output, node, scope, op);
  program_.ops.push_back(std::move(op));
}

void GraphReader::add_outputs(const json& output, const Node& node, Scope& scope, program::Op& op) {
  const auto [tag, value] = tagged(output, "output", node.place);
  const std::string name = name_in(output, node.place);
  if (name.empty() || is_unused(name)) {
    op.outputs.push_back(kNoValue);
    return;
  }
  ValueId id = kNoValue;
  if (tag == "as_tensor")
    id = add_tensor(node.graph, name, node.place);
  else if (tag == "as_sym_int")
    id = add_number(name, ValueKind::integer);
  else if (tag == "as_sym_float")
    id = add_number(name, ValueKind::real);
  else if (tag == "as_sym_bool")
    id = add_number(name, ValueKind::boolean);
  else
    node.place.refuse(fmt::format("a result of the kind '{}' is not known", tag));
  op.outputs.push_back(id);
  scope.bind(name, program::Reference{id}, node.place);
}

void GraphReader::inline_graph(const Node& node, Scope& scope) {
  const Place& place = node.place;
  const std::string_view name = std::string_view(node.target).substr(node.target.find('.') + 1);
  const json& inputs = list_of(field(node.content, "inputs", place), "inputs", place);
  const std::optional<Wrapper> wrapper = wrapper_of(name, inputs, node.no_grad, place);
  if (!wrapper)
    place.refuse(fmt::format("'{}' can't be run, because what it computes depends on values", name),
                 "write this part of the model without it, such as with torch.where");
  if (wrapper->operands > inputs.size()) place.refuse("an argument is missing");
  const json& inner =
      field(field(field(inputs[wrapper->graph], "arg", place), "as_graph", place), "graph", place);
  const json& names = list_of(field(inner, "inputs", place), "inputs", place);
  Scope inside;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t from = wrapper->operands + i;
    if (from >= inputs.size()) place.refuse("an argument of the graph inside is missing");
    const std::string inner_name = name_in(names[i], place);
    if (inner_name.empty()) continue;  // a number, which its uses repeat
    inside.bind(inner_name,
                read_argument(field(inputs[from], "arg", place), inner_name, scope, place), place);
  }
  read_nodes(inner, inside, wrapper->no_grad);
  const std::vector<json> results = flattened(field(inner, "outputs", place), place);
  const std::vector<json> given = flattened(field(node.content, "outputs", place), place);
  if (results.size() != given.size())
    place.refuse(fmt::format("the graph inside has {} results, and {} are taken", results.size(),
                             given.size()));
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string outer_name = name_in(given[i], place);
    if (outer_name.empty() || is_unused(outer_name)) continue;
    scope.bind(outer_name, read_argument(results[i], outer_name, inside, place), place);
  }
}

}  // namespace renkei::capture
