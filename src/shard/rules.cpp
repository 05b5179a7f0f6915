#include "shard/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "shard/rule_writer.h"

namespace renkei::shard {

using program::Argument;
using program::Op;
using program::Program;
using program::Size;
using program::ValueId;
using Names = std::set<std::string_view>;

// --- what rules are written with ---

RuleWriter::RuleWriter(const Program& program, const Op& op, const RuleOptions& options)
    : program_(program), op_(op), options_(options), references_(program::references(op)) {
  add("whole", {}, kWhole).divided = false;
}

ValueId RuleWriter::tensor(std::string_view argument) const {
  const Argument* found = find_argument(op_, argument);
  const auto* reference = found ? std::get_if<program::Reference>(found) : nullptr;
  if (!reference || program_.value(reference->value).kind != program::ValueKind::tensor)
    return program::kNoValue;
  return reference->value;
}

ValueId RuleWriter::tensor(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names)
    if (const ValueId found = tensor(name); found != program::kNoValue) return found;
  return program::kNoValue;
}

std::optional<int64_t> RuleWriter::integer(std::string_view argument, int64_t otherwise) const {
  const Argument* found = find_argument(op_, argument);
  if (!found || std::holds_alternative<program::None>(*found)) return otherwise;
  if (const auto* number = std::get_if<int64_t>(found)) return *number;
  return {};
}

std::optional<double> RuleWriter::real(std::string_view argument, double otherwise) const {
  const Argument* found = find_argument(op_, argument);
  if (!found || std::holds_alternative<program::None>(*found)) return otherwise;
  if (const auto* number = std::get_if<double>(found)) return *number;
  if (const auto* number = std::get_if<int64_t>(found)) return static_cast<double>(*number);
  return {};
}

std::optional<std::vector<int64_t>> RuleWriter::integers(std::string_view argument) const {
  const Argument* found = find_argument(op_, argument);
  if (!found) return {};
  if (const auto* number = std::get_if<int64_t>(found)) return std::vector{*number};
  const auto* list = std::get_if<program::List>(found);
  if (!list) return {};
  std::vector<int64_t> numbers;
  for (const Argument& element : *list) {
    const auto* number = std::get_if<int64_t>(&element);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

bool RuleWriter::flag(std::string_view argument, bool otherwise) const {
  const Argument* found = find_argument(op_, argument);
  const auto* value = found ? std::get_if<bool>(found) : nullptr;
  return value ? *value : otherwise;
}

bool RuleWriter::can_split(const Size& size, int64_t blocks) const {
  if (size.is_number()) return size.number() > 0 && size.number() % (blocks * parts()) == 0;
  return options_.batch && blocks == 1 && batch_unit(program_, size) > 0;
}

bool RuleWriter::can_split(ValueId value, int dim, int64_t blocks) const {
  return dim >= 0 && dim < rank_of(value) &&
         can_split(sizes(value)[static_cast<size_t>(dim)], blocks);
}

Strategy& RuleWriter::add(std::string name, std::span<const With> with, const Layout& outputs) {
  Strategy made{.name = std::move(name)};
  for (const ValueId reference : references_) {
    const auto found = std::ranges::find(with, reference, &With::value);
    made.inputs.push_back(found == with.end() ? kWhole : found->layout);
  }
  made.outputs.assign(op_.outputs.size(), outputs);
  made_.push_back(std::move(made));
  return made_.back();
}

int normal_dim(int64_t dim, int rank) {
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

namespace {

std::vector<ValueId> tensors_of(const RuleWriter& rule) {
  std::vector<ValueId> tensors;
  for (const ValueId value : program::references(rule.op()))
    if (rule.program().value(value).kind == program::ValueKind::tensor &&
        std::ranges::count(tensors, value) == 0)
      tensors.push_back(value);
  return tensors;
}

// --- element by element ---

// Arguments are broadcast to the output; what is repeated along the split dimension is copied.
void elementwise(RuleWriter& rule) {
  const ValueId output = rule.op().outputs.front();
  const int rank = rule.rank_of(output);
  const std::vector<ValueId> tensors = tensors_of(rule);
  if (tensors.empty()) return;
  rule.for_splits(output, [&](int dim, int64_t blocks) {
    std::vector<RuleWriter::With> with;
    for (const ValueId value : tensors) {
      const int here = dim - (rank - rule.rank_of(value));
      const bool repeated = here < 0 || (rule.sizes(value)[static_cast<size_t>(here)] == Size(1) &&
                                         rule.output_sizes()[static_cast<size_t>(dim)] != Size(1));
      with.push_back({value, repeated ? kCopied : split(here, blocks)});
    }
    rule.add(name_of(split(dim, blocks)), with, split(dim, blocks));
  });
}

// f(a + b) = f(a) + f(b): shares of a sum stay shares.
void linear_in_all(RuleWriter& rule) {
  elementwise(rule);
  std::vector<RuleWriter::With> with;
  for (const ValueId value : tensors_of(rule)) {
    if (rule.sizes(value) != rule.output_sizes() || !is_floating(rule.program().value(value).dtype))
      return;
    with.push_back({value, kPartial});
  }
  if (!with.empty() && is_floating(rule.program().value(rule.op().outputs.front()).dtype))
    rule.add("partial", with, kPartial).divided = false;
}

// Linear where all tensors are: adding a number to each share is not.
void sum_of_two(RuleWriter& rule) {
  const bool two =
      rule.tensor("self") != program::kNoValue && rule.tensor("other") != program::kNoValue;
  if (two)
    linear_in_all(rule);
  else
    elementwise(rule);
}

// Linear in one tensor, if the other factor is a number.
void product(RuleWriter& rule) {
  if (rule.tensor("other") == program::kNoValue && rule.integer("rounding_mode", 0))
    linear_in_all(rule);
  else
    elementwise(rule);
}

void dropout(RuleWriter& rule) {
  if (!program::draws(rule.op())) return elementwise(rule);
  const ValueId input = rule.tensor("input");
  const auto share = rule.real("p", 0.5);
  if (!rule.options().counted_dropout || input == program::kNoValue || !share ||
      rule.program().value(input).dtype != program::DType::f32)
    return;
  rule.for_splits(input, [&](int dim, int64_t blocks) {
    const int64_t unit = batch_unit(rule.program(), rule.sizes(input)[static_cast<size_t>(dim)]);
    rule.add(name_of(split(dim, blocks)), {{input, split(dim, blocks)}}, split(dim, blocks))
        .localise = [=, parts = int64_t{rule.parts()}](Op& op) {
      op.target = "renkei.tp_dropout.default";
      op.arguments = {{"input", *find_argument(op, "input")},
                      {"p", *share},
                      {"dim", int64_t{dim}},
                      {"blocks", blocks},
                      {"parts", parts},
                      {"unit", unit}};
    };
  });
}

// --- reductions ---

// Dimensions that are reduced go, or stay with size 1.
struct Reduced {
  std::set<int> dims;
  bool keep;

  int after(int dim) const {
    if (keep) return dim;
    return dim - static_cast<int>(std::ranges::count_if(dims, [&](int d) { return d < dim; }));
  }
};

Reduced reduced_by(const RuleWriter& rule, ValueId input) {
  Reduced reduced{.dims = {}, .keep = rule.flag("keepdim", false)};
  if (const auto dims = rule.integers("dim"))
    for (const int64_t dim : *dims) reduced.dims.insert(normal_dim(dim, rule.rank_of(input)));
  if (reduced.dims.empty())
    for (int dim = 0; dim < rule.rank_of(input); ++dim) reduced.dims.insert(dim);
  return reduced;
}

void other_dimensions(RuleWriter& rule, ValueId input, const Reduced& reduced) {
  rule.for_splits(input, [&](int dim, int64_t blocks) {
    if (!reduced.dims.contains(dim))
      rule.add(name_of(split(dim, blocks)), {{input, split(dim, blocks)}},
               split(reduced.after(dim), blocks));
  });
}

void sum(RuleWriter& rule) {
  const ValueId input = rule.tensor("self");
  if (input == program::kNoValue) return;
  const Reduced reduced = reduced_by(rule, input);
  other_dimensions(rule, input, reduced);
  rule.for_splits(input, [&](int dim, int64_t blocks) {
    if (reduced.dims.contains(dim))
      rule.add(fmt::format("sum {}", name_of(split(dim, blocks))), {{input, split(dim, blocks)}},
               kPartial);
  });
  if (is_floating(rule.program().value(input).dtype))
    rule.add("partial", {{input, kPartial}}, kPartial).divided = false;
}

// Mean, largest, place of the largest: only along other dimensions.
void reduction(RuleWriter& rule) {
  const ValueId input = rule.tensor("self");
  if (input == program::kNoValue) return;
  other_dimensions(rule, input, reduced_by(rule, input));
}

// Rows are computed by themselves: along all dimensions but one.
void along_one(RuleWriter& rule) {
  const ValueId input = rule.tensor({"self", "input"});
  const auto dim = rule.integer("dim", -1);
  if (input == program::kNoValue || !dim) return;
  other_dimensions(rule, input, {.dims = {normal_dim(*dim, rule.rank_of(input))}, .keep = true});
}

Rule rule_of(std::string_view name) {
  static const Names each{
      "abs",         "bitwise_and", "bitwise_not", "bitwise_or",  "ceil",        "celu",
      "clamp",       "clamp_max",   "clamp_min",   "cos",         "elu",         "eq",
      "erf",         "exp",         "expm1",       "floor",       "ge",          "gelu",
      "gt",          "hardsigmoid", "hardswish",   "hardtanh",    "isfinite",    "isinf",
      "isnan",       "le",          "leaky_relu",  "log",         "log1p",       "logical_and",
      "logical_not", "logical_or",  "lt",          "masked_fill", "maximum",     "minimum",
      "mish",        "ne",          "pow",         "reciprocal",  "relu",        "relu6",
      "round",       "rsqrt",       "rsub",        "selu",        "sigmoid",     "sign",
      "silu",        "sin",         "softplus",    "sqrt",        "square",      "tanh",
      "where",       "zeros_like",  "ones_like",   "full_like",   "detach",      "to",
      "type_as",     "__and__",     "__or__",      "__xor__",     "log_sigmoid", "logical_xor"};
  static const Names linear{"neg", "clone", "contiguous", "alias"};
  if (each.contains(name)) return elementwise;
  if (linear.contains(name)) return linear_in_all;
  if (name == "add" || name == "sub") return sum_of_two;
  if (name == "mul" || name == "div") return product;
  if (name == "dropout") return dropout;
  if (name == "sum") return sum;
  if (name == "mean" || name == "amax" || name == "amin" || name == "argmax" || name == "any" ||
      name == "all")
    return reduction;
  if (name == "softmax" || name == "_softmax" || name == "log_softmax" || name == "_log_softmax" ||
      name == "cumsum")
    return along_one;
  if (const Rule found = layer_rule(name)) return found;
  return shape_rule(name);
}

}  // namespace

std::vector<Strategy> strategies(const Program& program, const Op& op, const RuleOptions& options) {
  RuleWriter rule(program, op, options);
  const program::Target target = program::parts_of(op.target);
  const bool known = target.library == "aten" && !op.outputs.empty() &&
                     op.outputs.front() != program::kNoValue &&
                     program.value(op.outputs.front()).kind == program::ValueKind::tensor;
  // Who changes a tensor changes it as it is: only what knows of that (batch_norm) may.
  const bool writes = !program::written_values(op).empty() && target.name != "batch_norm";
  if (known && !writes && options.parts > 1)
    if (const Rule write = rule_of(target.name)) write(rule);
  return rule.take();
}

}  // namespace renkei::shard
