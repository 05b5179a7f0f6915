// Operations on rows of features, one for one, whose kernels in compute/ go over memory less often
// than Torch's own:
//
//   layer_norm over the last dimension   gradients of input, weight and bias in one pass
//   dropout                              no mask is stored: bits of a counter, computed again
//   cross_entropy_loss of rows           log Σ eˣ in one pass; no probabilities beside the logits
//   embedding                            the gradient is added to the rows that were used
//
// A dropout's kernel draws other bits than Torch's for the same key: the same network, another
// sample of its noise.
#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {
namespace {

using program::DType;
using program::Reference;

bool is_f32(const Editor& editor, ValueId id) {
  return id != program::kNoValue && editor.value(id).dtype == DType::f32;
}

std::optional<Op> layer_norm(const Editor& editor, const Op& op) {
  const ValueId input = value_of(op, "input");
  const auto shape = integers_of(op, "normalized_shape");
  const auto epsilon = real_of(op, "eps", 1e-5);
  if (!is_f32(editor, input) || !shape || shape->size() != 1 || !epsilon) return {};
  for (const char* name : {"weight", "bias"})
    if (!is_absent(op, name) && !is_f32(editor, value_of(op, name))) return {};
  return Op{.target = "renkei.layer_norm.default",
            .arguments = {{"input", Reference{input}},
                          {"weight", optional_value(value_of(op, "weight"))},
                          {"bias", optional_value(value_of(op, "bias"))},
                          {"epsilon", *epsilon}},
            .outputs = {}};
}

std::optional<Op> dropout(const Editor& editor, const Op& op) {
  const ValueId input = value_of(op, "input");
  const auto p = real_of(op, "p");
  if (!is_f32(editor, input) || !p || boolean_of(op, "train") != true) return {};
  return Op{.target = "renkei.dropout.default",
            .arguments = {{"input", Reference{input}}, {"p", *p}},
            .outputs = {}};
}

std::optional<Op> cross_entropy(const Editor& editor, const Op& op) {
  constexpr int64_t kMean = 1;  // of Torch's reductions
  const ValueId logits = value_of(op, "self"), target = value_of(op, "target");
  if (!is_f32(editor, logits) || editor.value(logits).sizes.size() != 2) return {};
  if (target == program::kNoValue || editor.value(target).dtype != DType::i64 ||
      editor.value(target).sizes.size() != 1 || !is_absent(op, "weight"))
    return {};
  const auto ignored = integer_of(op, "ignore_index", -100);
  const auto reduction = integer_of(op, "reduction", kMean);
  if (!ignored || !reduction || real_of(op, "label_smoothing", 0.0) != 0.0) return {};
  return Op{.target = "renkei.cross_entropy.default",
            .arguments = {{"logits", Reference{logits}},
                          {"target", Reference{target}},
                          {"ignore_index", *ignored},
                          {"reduction", *reduction}},
            .outputs = {}};
}

std::optional<Op> embedding(const Editor& editor, const Op& op) {
  const ValueId weight = value_of(op, "weight"), indices = value_of(op, "indices");
  const auto padding = integer_of(op, "padding_idx", -1);
  const bool usual = boolean_of(op, "scale_grad_by_freq", false) == false &&
                     boolean_of(op, "sparse", false) == false;
  if (!is_f32(editor, weight) || indices == program::kNoValue ||
      editor.value(indices).dtype != DType::i64 || !padding || !usual)
    return {};
  return Op{.target = "renkei.embedding.default",
            .arguments = {{"weight", Reference{weight}},
                          {"indices", Reference{indices}},
                          {"padding_idx", *padding}},
            .outputs = {}};
}

struct Kind {
  std::string_view target;
  const char* name;
  bool on;
  std::optional<Op> (*write)(const Editor&, const Op&);
};

}  // namespace

void use_row_kernels(Editor& editor, const RewriteOptions& options, std::vector<Applied>& applied) {
  const Kind kinds[] = {
      {"aten.layer_norm.default", "layer norm", options.layer_norm, layer_norm},
      {"aten.dropout.default", "dropout by a counter", options.dropout, dropout},
      {"aten.cross_entropy_loss.default", "cross entropy", options.cross_entropy, cross_entropy},
      {"aten.embedding.default", "embedding", options.embedding, embedding}};
  for (int place = 0; place < editor.places(); ++place) {
    for (const Kind& kind : kinds) {
      if (!kind.on || !editor.is(place, kind.target)) continue;
      const Op op = editor.op(place);
      auto fast = kind.write(editor, op);
      applied.push_back({kind.name, editor.where(place),
                         fast ? "" : "its sizes, dtypes or constants do not fit"});
      if (!fast) break;
      fast->outputs = op.outputs;
      fast->module = op.module;
      fast->source = op.source;
      fast->no_grad = op.no_grad;
      editor.replace(place, std::move(*fast));
      break;
    }
  }
}

}  // namespace renkei::rewrite
