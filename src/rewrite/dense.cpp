// Dense layers: aten.linear with a bias, and a ReLU that alone reads its result, become
// renkei.linear, which works on rows of features. It uses the weights of few rows as they lie
// (compute/dense.h), does the ReLU on the way and writes the gradients of the weights to where they
// are reduced. Inputs of more dimensions are views as rows, and so are the results.
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
  if (bias == program::kNoValue) return "it has no bias";
  for (const ValueId id : {input, weight, bias})
    if (editor.value(id).dtype != DType::f32) return "it is not of f32";
  if (editor.value(input).sizes.size() < 2) return "its input is not a batch";
  if (editor.value(weight).sizes.size() != 2) return "its weights are no matrix";
  return "";
}

// Writes operations before a place, which moves up with each.
class Before {
 public:
  Before(Editor& editor, int& place) : editor_(editor), place_(place) {}

  ValueId add(Op op, Value result) {
    op.module = editor_.op(place_).module;
    op.source = editor_.op(place_).source;
    op.no_grad = editor_.op(place_).no_grad;
    op.outputs = {editor_.add_value(std::move(result))};
    const ValueId id = op.outputs[0];
    editor_.insert_before(place_++, std::move(op));
    return id;
  }

 private:
  Editor& editor_;
  int& place_;
};

// The sizes of a view, of which one may be left to be found: -1. Others that are not fixed are
// asked for, of `like`, which has the same.
program::List shape_like(const Editor& editor, Before& before, ValueId like,
                         const std::vector<Size>& sizes) {
  program::List shape;
  bool one_is_open = false;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim].is_number()) {
      shape.emplace_back(sizes[dim].number());
    } else if (!one_is_open) {
      shape.emplace_back(int64_t{-1});
      one_is_open = true;
    } else {
      const Op ask{.target = "aten.sym_size.int",
                   .arguments = {{"self", Reference{like}}, {"dim", static_cast<int64_t>(dim)}},
                   .outputs = {}};
      const std::string name = editor.value(like).name + ".size" + std::to_string(dim);
      shape.emplace_back(Reference{before.add(
          ask, {.name = name, .kind = program::ValueKind::integer, .dtype = DType::i64})});
    }
  }
  return shape;
}

Size product(const std::vector<Size>& sizes) {
  Size count = 1;
  for (const Size& size : sizes) count = count * size;
  return count;
}

// The operation at `place` becomes a product of rows; returns where its result is then made.
void write_rows(Editor& editor, int& place, Op linear) {
  const ValueId input = value_of(linear, "input"), result = linear.outputs[0];
  const std::vector<Size> in = editor.value(input).sizes, out = editor.value(result).sizes;
  const Size rows = product({in.begin(), in.end() - 1});
  Before before(editor, place);
  const ValueId flat =
      before.add({.target = "aten.reshape.default",
                  .arguments = {{"self", Reference{input}},
                                {"shape", program::List{int64_t{-1}, in.back().number()}}},
                  .outputs = {}},
                 {.name = editor.value(input).name + ".rows", .sizes = {rows, in.back()}});
  set_argument(linear, "input", Reference{flat});
  const program::List shape = shape_like(editor, before, input, out);
  const ValueId product_rows = before.add(
      linear, {.name = editor.value(result).name + ".rows", .sizes = {rows, out.back()}});
  Op view{.target = "aten.reshape.default",
          .arguments = {{"self", Reference{product_rows}}, {"shape", shape}},
          .outputs = {result},
          .module = linear.module,
          .source = linear.source,
          .no_grad = linear.no_grad};
  editor.replace(place, std::move(view));
}

// The ReLU that alone reads the result; -1: there is none.
int relu_after(const Editor& editor, int place) {
  const int user = editor.only_user(editor.op(place).outputs[0]);
  const bool fits = user >= 0 && editor.is(user, "aten.relu.default") &&
                    editor.op(user).no_grad == editor.op(place).no_grad;
  return fits ? user : -1;
}

}  // namespace

void use_dense_kernels(Editor& editor, std::vector<Applied>& applied) {
  for (int place = 0; place < editor.places(); ++place) {
    if (!editor.is(place, "aten.linear.default")) continue;
    const Op op = editor.op(place);
    if (op.outputs.size() != 1 || op.outputs[0] == program::kNoValue) continue;
    const std::string reason = why_not(editor, op);
    if (!reason.empty()) {
      applied.push_back({"dense layer", editor.where(place), reason});
      continue;
    }
    const int relu = relu_after(editor, place);
    applied.push_back({relu < 0 ? "dense layer" : "dense layer with ReLU", editor.where(place)});
    Op linear{.target = "renkei.linear.default",
              .arguments = {{"input", Reference{value_of(op, "input")}},
                            {"weight", Reference{value_of(op, "weight")}},
                            {"bias", Reference{value_of(op, "bias")}},
                            {"relu", relu >= 0}},
              .outputs = relu < 0 ? op.outputs : editor.op(relu).outputs,
              .module = op.module,
              .source = op.source,
              .no_grad = op.no_grad};
    if (relu >= 0) editor.erase(relu);
    if (editor.value(value_of(op, "input")).sizes.size() == 2)
      editor.replace(place, std::move(linear));
    else
      write_rows(editor, place, std::move(linear));
  }
}

}  // namespace renkei::rewrite
