// Batch normalisation, then the addition of another image (the way around a residual block), then a
// ReLU, each the only reader of what comes before: one kernel in one pass over memory instead of
// three, and in the backward direction as well. The kernel also counts the batches that it has
// seen, which the network does by an operation of its own.
#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {
namespace {

using program::Reference;

bool is_normalisation(const Editor& editor, int place) {
  return place >= 0 && (editor.is(place, "renkei.batch_norm.default") ||
                        editor.is(place, "renkei.normalise.default"));
}

// It can still take an addition: no ReLU comes before.
bool takes_residual(const Editor& editor, int place) {
  return is_normalisation(editor, place) && is_absent(editor.op(place), "residual") &&
         boolean_of(editor.op(place), "relu") == false;
}

bool is_plain_sum(const Op& op) {
  return op.target == "aten.add.Tensor" && real_of(op, "alpha", 1.0) == 1.0;
}

// The addition at `sum` moves into the normalisation of its operand `mine`.
bool fuse_sum(Editor& editor, int sum, std::string_view mine, std::string_view theirs) {
  const ValueId normalised = value_of(editor.op(sum), mine),
                residual = value_of(editor.op(sum), theirs);
  if (normalised == program::kNoValue || residual == program::kNoValue) return false;
  const int place = editor.producer(normalised);
  if (!takes_residual(editor, place) || editor.only_user(normalised) != sum) return false;
  if (editor.value(residual).sizes != editor.value(normalised).sizes ||
      editor.value(residual).dtype != editor.value(normalised).dtype ||
      editor.op(place).no_grad != editor.op(sum).no_grad || editor.is_written(residual) ||
      !editor.can_move_down(place, sum))
    return false;
  Op fused = editor.op(place);
  set_argument(fused, "residual", Reference{residual});
  fused.outputs = editor.op(sum).outputs;
  editor.erase(place);
  editor.replace(sum, std::move(fused));
  return true;
}

bool fuse_relu(Editor& editor, int relu) {
  const ValueId before = value_of(editor.op(relu), "self");
  const int place = before == program::kNoValue ? -1 : editor.producer(before);
  if (!is_normalisation(editor, place) || boolean_of(editor.op(place), "relu") != false ||
      editor.only_user(before) != relu || editor.op(place).no_grad != editor.op(relu).no_grad)
    return false;
  Op fused = editor.op(place);
  set_argument(fused, "relu", true);
  fused.outputs = editor.op(relu).outputs;
  editor.erase(relu);
  editor.replace(place, std::move(fused));
  return true;
}

// The buffer "x.num_batches_tracked" beside "x.running_mean"; kNoValue: there is none.
ValueId counter_beside(const Program& program, ValueId running_mean) {
  constexpr std::string_view kMean = "running_mean", kCounter = "num_batches_tracked";
  for (const auto& mean : program.state) {
    if (mean.value != running_mean || !mean.name.ends_with(kMean)) continue;
    const auto name = mean.name.substr(0, mean.name.size() - kMean.size()).append(kCounter);
    for (const auto& counter : program.state)
      if (counter.name == name) return counter.value;
  }
  return program::kNoValue;
}

bool counts_by_one(const Editor& editor, int place, ValueId counter) {
  const Op& op = editor.op(place);
  const bool is_used = op.outputs.size() == 1 && op.outputs[0] != program::kNoValue &&
                       (!editor.users(op.outputs[0]).empty() || editor.is_output(op.outputs[0]));
  return op.target == "aten.add_.Tensor" && value_of(op, "self") == counter &&
         integer_of(op, "other") == 1 && real_of(op, "alpha", 1.0) == 1.0 && !is_used;
}

}  // namespace

void count_batches_in_kernel(Editor& editor) {
  for (int place = 0; place < editor.places(); ++place) {
    if (!editor.is(place, "renkei.batch_norm.default")) continue;
    const ValueId mean = value_of(editor.op(place), "running_mean");
    if (mean == program::kNoValue || !is_absent(editor.op(place), "batches")) continue;
    const ValueId counter = counter_beside(editor.program(), mean);
    if (counter == program::kNoValue || editor.is_output(counter)) continue;
    const int count = editor.only_user(counter);
    if (count < 0 || !counts_by_one(editor, count, counter)) continue;
    editor.erase(count);
    editor.set(place, "batches", Reference{counter});
  }
}

void fuse_batch_norm_tail(Editor& editor, std::vector<Applied>& applied) {
  for (int place = 0; place < editor.places(); ++place) {
    if (is_plain_sum(editor.op(place)) &&
        (fuse_sum(editor, place, "self", "other") || fuse_sum(editor, place, "other", "self")))
      applied.push_back({"batch norm with addition", editor.where(place)});
    if (editor.is(place, "aten.relu.default")) {
      const int before = editor.producer(value_of(editor.op(place), "self"));
      if (fuse_relu(editor, place))
        applied.push_back({"batch norm with ReLU", editor.where(before)});
    }
  }
}

}  // namespace renkei::rewrite
