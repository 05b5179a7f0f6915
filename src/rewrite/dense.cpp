// Dense layers: aten.linear, and what alone reads its result, become one operation on rows of
// features:
//
//   renkei.linear         x Wᵀ + b, then a ReLU where there is one
//   renkei.linear.gelu    GELU(x Wᵀ + b): the bias is added on the way
//   renkei.linear.add     residual + dropout(x Wᵀ + b): the end of each half of a transformer's
//   block
//
// It uses the weights of few rows as they lie (compute/dense.h), goes over the result once instead
// of two to four times, and writes the gradients of the weights to where they are reduced. Inputs
// of more dimensions are views as rows, and so are the results.
#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {
namespace {

using program::DType;
using program::Reference;
using program::Size;

std::string why_not(const Editor& editor, const Op& op) {
  const ValueId input = value_of(op, "input"), weight = value_of(op, "weight"),
                bias = value_of(op, "bias");
  for (const ValueId id : {input, weight, bias})
    if (id != program::kNoValue && editor.value(id).dtype != DType::f32) return "it is not of f32";
  if (editor.value(input).sizes.size() < 2) return "its input is not a batch";
  if (editor.value(weight).sizes.size() != 2) return "its weights are no matrix";
  return "";
}

// Writes operations before a place, which moves up with each.
class Before {
 public:
  Before(Editor& editor, int& place, const Op& like)
      : editor_(editor), place_(place), like_(like) {}

  ValueId add(Op op, Value result) {
    op.module = like_.module;
    op.source = like_.source;
    op.no_grad = like_.no_grad;
    op.outputs = {editor_.add_value(std::move(result))};
    const ValueId id = op.outputs[0];
    editor_.insert_before(place_++, std::move(op));
    return id;
  }

  ValueId rows(ValueId id) {  // as rows of its last dimension
    const Value value = editor_.value(id);
    Size count = 1;
    for (size_t dim = 0; dim + 1 < value.sizes.size(); ++dim) count = count * value.sizes[dim];
    const program::List shape{int64_t{-1}, value.sizes.back().number()};
    return add({.target = "aten.reshape.default",
                .arguments = {{"self", Reference{id}}, {"shape", shape}},
                .outputs = {}},
               {.name = value.name + ".rows", .sizes = {count, value.sizes.back()}});
  }

  // The sizes of a view, of which one may be left to be found: -1. Others that are not fixed are
  // asked for, of `like`, which has the same.
  program::List shape_of(const std::vector<Size>& sizes, ValueId like) {
    program::List shape;
    bool one_is_open = false;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (sizes[dim].is_number()) {
        shape.emplace_back(sizes[dim].number());
      } else if (!one_is_open) {
        shape.emplace_back(int64_t{-1});
        one_is_open = true;
      } else {
        shape.emplace_back(Reference{ask(like, static_cast<int64_t>(dim))});
      }
    }
    return shape;
  }

 private:
  ValueId ask(ValueId like, int64_t dim) {
    return add({.target = "aten.sym_size.int",
                .arguments = {{"self", Reference{like}}, {"dim", dim}},
                .outputs = {}},
               {.name = editor_.value(like).name + ".size" + std::to_string(dim),
                .kind = program::ValueKind::integer,
                .dtype = DType::i64});
  }

  Editor& editor_;
  int& place_;
  const Op& like_;
};

// What follows a product and becomes part of it.
struct Tail {
  std::string name;  // for people: " with ReLU"
  std::string target = "renkei.linear.default";
  std::vector<program::NamedArgument> arguments = {{"relu", false}};
  ValueId residual = program::kNoValue;
  std::vector<int> ops = {};  // in order
};

// The only operation that reads the result of the one at `place`, of this target; -1: none such.
int next(const Editor& editor, int place, std::string_view target) {
  const int user = editor.only_user(editor.op(place).outputs[0]);
  const bool fits = user >= 0 && editor.is(user, target) && editor.op(user).outputs.size() == 1 &&
                    editor.op(user).no_grad == editor.op(place).no_grad;
  return fits ? user : -1;
}

std::optional<Tail> residual_tail(const Editor& editor, int place) {
  Tail tail{.name = " with addition", .target = "renkei.linear.add"};
  double p = 0;
  int last = place;
  if (const int dropout = next(editor, place, "aten.dropout.default"); dropout >= 0) {
    if (boolean_of(editor.op(dropout), "train") != true || !real_of(editor.op(dropout), "p"))
      return {};
    p = *real_of(editor.op(dropout), "p");
    tail.ops.push_back(dropout);
    last = dropout;
  }
  const int sum = next(editor, last, "aten.add.Tensor");
  if (sum < 0 || real_of(editor.op(sum), "alpha", 1.0) != 1.0) return {};
  const ValueId mine = editor.op(last).outputs[0];
  const ValueId self = value_of(editor.op(sum), "self"), other = value_of(editor.op(sum), "other");
  tail.residual = self == mine ? other : self;
  if (tail.residual == program::kNoValue || editor.is_written(tail.residual) ||
      editor.value(tail.residual).sizes != editor.value(mine).sizes ||
      editor.value(tail.residual).dtype != DType::f32 || !editor.can_move_down(last, sum))
    return {};
  tail.ops.push_back(sum);
  tail.arguments = {{"dropout_p", p}};
  return tail;
}

Tail tail_of(const Editor& editor, int place, const RewriteOptions& options) {
  std::optional<Tail> tail;
  if (const int relu = next(editor, place, "aten.relu.default"); relu >= 0) {
    tail = Tail{.name = " with ReLU", .arguments = {{"relu", true}}, .ops = {relu}};
  } else if (value_of(editor.op(place), "bias") == program::kNoValue) {
    return {};  // the other tails add the bias on the way
  } else if (const int gelu = next(editor, place, "aten.gelu.default"); gelu >= 0 && options.gelu) {
    const auto* given = find_argument(editor.op(gelu), "approximate");
    const auto* word = given ? std::get_if<std::string>(given) : nullptr;
    tail = Tail{.name = " with GELU",
                .target = "renkei.linear.gelu",
                .arguments = {{"approximate", word ? *word : std::string("none")}},
                .ops = {gelu}};
  } else if (options.residuals) {
    tail = residual_tail(editor, place);
  }
  return tail && editor.can_move_down(place, tail->ops.back()) ? *tail : Tail{};
}

// The product with its tail in the place of the tail's last operation, or of its own.
void write(Editor& editor, int place, const Tail& tail) {
  const Op op = editor.op(place);
  int at = tail.ops.empty() ? place : tail.ops.back();
  const ValueId result = editor.op(at).outputs[0], input = value_of(op, "input");
  const std::vector<Size> out = editor.value(result).sizes;
  for (const int erased : tail.ops) editor.erase(erased);
  editor.erase(place);

  Before before(editor, at, op);
  const ValueId bias = value_of(op, "bias");
  const bool as_rows = out.size() != 2;
  Op linear{.target = tail.target,
            .arguments = {{"input", Reference{as_rows ? before.rows(input) : input}},
                          {"weight", Reference{value_of(op, "weight")}},
                          {"bias", bias == program::kNoValue ? program::Argument(program::None{})
                                                             : Reference{bias}}},
            .outputs = {result},
            .module = op.module,
            .source = op.source,
            .no_grad = op.no_grad};
  if (tail.residual != program::kNoValue)
    linear.arguments.push_back(
        {"residual", Reference{as_rows ? before.rows(tail.residual) : tail.residual}});
  linear.arguments.insert(linear.arguments.end(), tail.arguments.begin(), tail.arguments.end());
  if (!as_rows) return editor.replace(at, std::move(linear));

  Size count = 1;
  for (size_t dim = 0; dim + 1 < out.size(); ++dim) count = count * out[dim];
  const program::List shape = before.shape_of(out, input);
  const ValueId rows = before.add(
      linear, {.name = editor.value(result).name + ".rows", .sizes = {count, out.back()}});
  editor.replace(at, {.target = "aten.reshape.default",
                      .arguments = {{"self", Reference{rows}}, {"shape", shape}},
                      .outputs = {result},
                      .module = op.module,
                      .source = op.source,
                      .no_grad = op.no_grad});
}

}  // namespace

void use_dense_kernels(Editor& editor, const RewriteOptions& options,
                       std::vector<Applied>& applied) {
  for (int place = 0; place < editor.places(); ++place) {
    if (!editor.is(place, "aten.linear.default") || editor.op(place).outputs.size() != 1 ||
        editor.op(place).outputs[0] == program::kNoValue)
      continue;
    const std::string where = editor.where(place), reason = why_not(editor, editor.op(place));
    if (!reason.empty()) {
      applied.push_back({"dense layer", where, reason});
      continue;
    }
    const Tail tail = tail_of(editor, place, options);
    applied.push_back({"dense layer" + tail.name, where});
    write(editor, place, tail);
  }
}

}  // namespace renkei::rewrite
