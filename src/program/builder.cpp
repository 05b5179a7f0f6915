#include "program/builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace renkei::program {
namespace {

// "aten.conv2d.default" -> "conv2d", as torch.export names results.
std::string_view short_name(std::string_view target) {
  const size_t begin = target.find('.') + 1;
  return target.substr(begin, target.find('.', begin) - begin);
}

// A dimension counted from the end becomes one counted from the start.
size_t place(int64_t dim, size_t dims) {
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(dims) : dim);
}

Size product(std::span<const Size> sizes) {
  Size result = 1;
  for (const Size& size : sizes) result = result == Size(1) ? size : result * size;
  return result;
}

// Of what NumPy's rule makes of two shapes: equal, or 1 on one side.
std::vector<Size> broadcast(const std::vector<Size>& a, const std::vector<Size>& b) {
  std::vector<Size> result = a.size() >= b.size() ? a : b;
  const std::vector<Size>& shorter = a.size() >= b.size() ? b : a;
  const size_t offset = result.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i)
    if (result[offset + i] == Size(1)) result[offset + i] = shorter[i];
  return result;
}

}  // namespace

Builder::Builder(std::string name) : batch_(Size::expression("batch")) {
  program_.name = std::move(name);
  program_.symbols.push_back({.name = "batch", .batch = true});
}

Builder::Builder(Program program) : program_(std::move(program)) {
  if (const std::string_view symbol = batch_symbol(program_); !symbol.empty())
    batch_ = Size::expression(std::string(symbol));
  else if (!program_.inputs.empty() && !value(program_.inputs[0].value).sizes.empty())
    batch_ = value(program_.inputs[0].value).sizes[0];
  for (const Value& value : program_.values) names_.insert(value.name);
}

Builder::Scope::Scope(Builder& builder, std::string_view name)
    : builder_(builder), outer_(builder.scope_.size()) {
  builder.scope_ = builder.path(name);
}

std::string Builder::path(std::string_view name) const {
  if (scope_.empty()) return std::string(name);
  return name.empty() ? scope_ : scope_ + "." + std::string(name);
}

int64_t Builder::size(ValueId id, int64_t dim) const {
  const Size& size = sizes(id).at(place(dim, sizes(id).size()));
  if (!size.is_number())
    refuse(value(id).name, "its size " + size.str() + " is not known before it runs");
  return size.number();
}

void Builder::refuse(std::string_view target, const std::string& why) const {
  throw Error(ErrorCode::bug, fmt::format("{} in {}: {}", target, program_.name, why),
              "a network's shapes do not fit together");
}

ValueId Builder::add_value(std::string_view wanted_name, ValueKind kind, DType dtype,
                           std::vector<Size> sizes) {
  std::string name(wanted_name);
  int& suffix = suffixes_[name];
  while (!names_.insert(name).second) name = fmt::format("{}_{}", wanted_name, ++suffix);
  program_.values.push_back({std::move(name), kind, dtype, std::move(sizes)});
  return static_cast<ValueId>(program_.values.size()) - 1;
}

ValueId Builder::input(std::string name, DType dtype, std::vector<Size> sizes) {
  const ValueId id = add_value(name, ValueKind::tensor, dtype, std::move(sizes));
  program_.inputs.push_back({std::move(name), id});
  return id;
}

ValueId Builder::add_state(std::string_view name, StateKind kind, std::vector<int64_t> sizes,
                           DType dtype, const Initial& initial) {
  const std::string full = path(name);
  const ValueId id =
      add_value(full, ValueKind::tensor, dtype, std::vector<Size>(sizes.begin(), sizes.end()));
  // Parameters come before buffers.
  const auto place = std::ranges::upper_bound(program_.state, kind, {}, &State::kind);
  program_.state.insert(place, {.name = full, .kind = kind, .value = id, .initial = initial});
  return id;
}

ValueId Builder::parameter(std::string_view name, std::vector<int64_t> sizes,
                           const Initial& initial) {
  return add_state(name, StateKind::parameter, std::move(sizes), DType::f32, initial);
}

ValueId Builder::buffer(std::string_view name, std::vector<int64_t> sizes, DType dtype,
                        const Initial& initial) {
  return add_state(name, StateKind::buffer, std::move(sizes), dtype, initial);
}

void Builder::alias(ValueId parameter, std::string_view name) {
  const auto state = std::ranges::find(program_.state, parameter, &State::value);
  if (state == program_.state.end()) refuse(name, "there is no parameter that it could name");
  state->aliases.push_back(path(name));
}

void Builder::output(std::string name, ValueId value) {
  program_.outputs.push_back({std::move(name), value});
}

ValueId Builder::op(std::string target, std::vector<NamedArgument> arguments, Result result,
                    std::string_view module) {
  const ValueId id =
      add_value(short_name(target), ValueKind::tensor, result.dtype, std::move(result.sizes));
  program_.ops.push_back({.target = std::move(target),
                          .arguments = std::move(arguments),
                          .outputs = {id},
                          .module = path(module)});
  return id;
}

ValueId Builder::like(ValueId model, std::string target, std::vector<NamedArgument> arguments,
                      std::string_view module) {
  return op(std::move(target), std::move(arguments), {value(model).dtype, sizes(model)}, module);
}

void Builder::becomes(ValueId value) {
  std::vector<ValueId>& outputs = program_.ops.back().outputs;
  if (outputs.size() != 1 || outputs[0] + 1 != static_cast<ValueId>(program_.values.size()))
    refuse(program_.value(value).name, "it can't become the newest value");
  program_.values.pop_back();
  outputs = {value};
}

Program Builder::finish() {
  check(program_, program_.name);
  return take();
}

Program Builder::take() {
  return std::exchange(program_, {});
}

ValueId Builder::add(ValueId a, ValueId b) {
  return op("aten.add.Tensor", {{"self", Reference{a}}, {"other", Reference{b}}},
            {value(a).dtype, broadcast(sizes(a), sizes(b))});
}

ValueId Builder::add_(ValueId a, const Argument& b, std::string_view module) {
  return like(a, "aten.add_.Tensor", {{"self", Reference{a}}, {"other", b}}, module);
}

ValueId Builder::mul(ValueId a, const Argument& b) {
  return like(a, "aten.mul.Tensor", {{"self", Reference{a}}, {"other", b}});
}

ValueId Builder::div(ValueId a, const Argument& b) {
  return like(a, "aten.div.Tensor", {{"self", Reference{a}}, {"other", b}});
}

ValueId Builder::ne(ValueId a, int64_t number) {
  return op("aten.ne.Scalar", {{"self", Reference{a}}, {"other", number}},
            {DType::boolean, sizes(a)});
}

ValueId Builder::eq(ValueId a, ValueId b) {
  return op("aten.eq.Tensor", {{"self", Reference{a}}, {"other", Reference{b}}},
            {DType::boolean, broadcast(sizes(a), sizes(b))});
}

ValueId Builder::clamp_min(ValueId a, int64_t least) {
  return like(a, "aten.clamp_min.default", {{"self", Reference{a}}, {"min", least}});
}

ValueId Builder::argmax(ValueId input, int64_t dim) {
  std::vector<Size> left = sizes(input);
  left.erase(left.begin() + static_cast<int64_t>(place(dim, left.size())));
  return op("aten.argmax.default", {{"self", Reference{input}}, {"dim", dim}},
            {DType::i64, std::move(left)});
}

// Sums of truth values and whole numbers are whole numbers.
ValueId Builder::sum(ValueId input) {
  return op("aten.sum.default", {{"self", Reference{input}}},
            {is_floating(value(input).dtype) ? value(input).dtype : DType::i64, {}});
}

ValueId Builder::sum(ValueId input, int64_t dim) {
  std::vector<Size> left = sizes(input);
  left.erase(left.begin() + static_cast<int64_t>(place(dim, left.size())));
  return op("aten.sum.dim_IntList", {{"self", Reference{input}}, {"dim", List{dim}}},
            {is_floating(value(input).dtype) ? value(input).dtype : DType::i64, std::move(left)});
}

ValueId Builder::to(ValueId input, DType dtype) {
  return op("aten.to.dtype", {{"self", Reference{input}}, {"dtype", dtype}}, {dtype, sizes(input)});
}

ValueId Builder::cat(std::span<const ValueId> parts, int64_t dim) {
  List list;
  Result result{value(parts[0]).dtype, sizes(parts[0])};
  Size& joined = result.sizes.at(place(dim, result.sizes.size()));
  for (const ValueId part : parts) {
    if (!list.empty()) joined = joined + sizes(part).at(place(dim, sizes(part).size()));
    list.emplace_back(Reference{part});
  }
  return op("aten.cat.default", {{"tensors", std::move(list)}, {"dim", dim}}, std::move(result));
}

std::vector<ValueId> Builder::split(ValueId input, int64_t part, int64_t dim) {
  const int64_t whole = size(input, dim);
  if (part < 1 || whole % part != 0) refuse("split", "the parts are not of equal size");
  std::vector<Size> left = sizes(input);
  left[place(dim, left.size())] = part;
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < whole / part; ++i)
    parts.push_back(add_value("split", ValueKind::tensor, value(input).dtype, left));
  program_.ops.push_back(
      {.target = "aten.split.Tensor",
       .arguments = {{"self", Reference{input}}, {"split_size", part}, {"dim", dim}},
       .outputs = parts,
       .module = scope_});
  return parts;
}

ValueId Builder::narrow(ValueId input, int64_t dim, int64_t start, int64_t length) {
  std::vector<Size> left = sizes(input);
  left.at(place(dim, left.size())) = length;
  return op("aten.narrow.default",
            {{"self", Reference{input}}, {"dim", dim}, {"start", start}, {"length", length}},
            {value(input).dtype, std::move(left)});
}

ValueId Builder::transpose(ValueId input, int64_t a, int64_t b) {
  std::vector<Size> turned = sizes(input);
  std::swap(turned.at(place(a, turned.size())), turned.at(place(b, turned.size())));
  return op("aten.transpose.int", {{"self", Reference{input}}, {"dim0", a}, {"dim1", b}},
            {value(input).dtype, std::move(turned)});
}

ValueId Builder::flatten(ValueId input, int64_t first, std::string_view module) {
  const std::vector<Size>& before = sizes(input);
  std::vector<Size> after(before.begin(), before.begin() + first);
  after.push_back(product(std::span(before).subspan(static_cast<size_t>(first))));
  std::vector<NamedArgument> arguments{{"self", Reference{input}}};
  if (first != 0) arguments.push_back({"start_dim", first});
  return op("aten.flatten.using_ints", std::move(arguments), {value(input).dtype, std::move(after)},
            module);
}

ValueId Builder::view(ValueId input, std::vector<Size> sizes) {
  return with_sizes("aten.view.default", "size", input, std::move(sizes));
}

ValueId Builder::reshape(ValueId input, std::vector<Size> sizes) {
  return with_sizes("aten.reshape.default", "shape", input, std::move(sizes));
}

ValueId Builder::with_sizes(const char* target, const char* argument, ValueId input,
                            std::vector<Size> sizes) {
  List list;
  int unknown = 0;
  for (const Size& size : sizes) {
    unknown += size.is_number() ? 0 : 1;
    list.emplace_back(size.is_number() ? size.number() : int64_t{-1});
  }
  if (unknown > 1) refuse(target, "two sizes depend on the batch");
  return op(target, {{"self", Reference{input}}, {argument, std::move(list)}},
            {value(input).dtype, std::move(sizes)});
}

ValueId Builder::sym_size(ValueId input, int64_t dim) {
  const ValueId id = add_value("sym_size", ValueKind::integer, DType::i64, {});
  program_.ops.push_back({.target = "aten.sym_size.int",
                          .arguments = {{"self", Reference{input}}, {"dim", dim}},
                          .outputs = {id},
                          .module = scope_});
  return id;
}

}  // namespace renkei::program
