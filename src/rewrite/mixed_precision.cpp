#include "rewrite/mixed_precision.h"

#include <map>
#include <set>

#include "program/effects.h"
#include "rewrite/constants.h"

namespace renkei::rewrite {
namespace {

using program::Argument;
using program::DType;
using program::kNoValue;
using program::Reference;

// Of these the first tensor alone says what comes out; weights and statistics may be f32.
bool follows_first(std::string_view name) {
  static const std::set<std::string_view> names{
      "batch_norm",        "layer_norm",        "group_norm",        "instance_norm", "rms_norm",
      "native_layer_norm", "native_batch_norm", "native_group_norm", "embedding",     "bernoulli"};
  return names.contains(name);
}

class Caster {
 public:
  explicit Caster(Editor& editor) : editor_(editor) {
    for (size_t id = 0; id < editor.program().values.size(); ++id)
      written_.push_back(editor.is_written(static_cast<ValueId>(id)));
  }

  void add(Op op) {
    const CastPolicy policy = cast_policy(op.target);
    module_ = op.module;
    if (const auto to = wanted(policy, op))
      for (auto& [name, argument] : op.arguments) cast_in(argument, *to, op);
    const DType result = result_of(policy, op);
    for (const ValueId id : op.outputs)
      if (id != kNoValue && is_castable(id)) editor_.set_dtype(id, result);
    if (policy == CastPolicy::bf16 && op.target.starts_with("aten.")) in_bf16_.push_back(op.module);
    ops_.push_back(std::move(op));
  }

  void finish() {
    module_.clear();
    for (size_t port = 0; port < editor_.program().outputs.size(); ++port) {
      const ValueId id = editor_.program().outputs[port].value;
      if (is_castable(id)) editor_.set_output(port, cast(id, DType::f32));
    }
    editor_.set_ops(std::move(ops_));
  }

  const std::vector<std::string>& in_bf16() const { return in_bf16_; }

 private:
  bool is_castable(ValueId id) const {
    const Value& value = editor_.value(id);
    return value.kind == program::ValueKind::tensor &&
           (value.dtype == DType::f32 || value.dtype == DType::bf16);
  }

  // The widest of the tensors among its arguments, by PyTorch's rule: tensors without dimensions
  // count only where there are no others.
  DType widest(const Op& op) const {
    bool any = false, any_f32 = false, scalar_f32 = false;
    for (const ValueId id : references(op)) {
      if (!is_castable(id)) continue;
      const bool f32 = editor_.value(id).dtype == DType::f32;
      if (editor_.value(id).sizes.empty()) {
        scalar_f32 = scalar_f32 || f32;
      } else {
        any = true;
        any_f32 = any_f32 || f32;
      }
    }
    const bool f32 = any ? any_f32 : scalar_f32;
    return f32 || references(op).empty() ? DType::f32 : DType::bf16;
  }

  // What its inputs are cast to; nothing: they stay as they are.
  std::optional<DType> wanted(CastPolicy policy, const Op& op) const {
    switch (policy) {
      case CastPolicy::bf16:
        return DType::bf16;
      case CastPolicy::f32:
        return DType::f32;
      case CastPolicy::widest:
        return widest(op);
      case CastPolicy::like_self:
        return first_dtype(op);
      case CastPolicy::follow:
        return {};
    }
    return {};
  }

  DType first_dtype(const Op& op) const {
    for (const ValueId id : references(op))
      if (is_castable(id)) return editor_.value(id).dtype;
    return DType::f32;
  }

  DType result_of(CastPolicy policy, const Op& op) const {
    if (policy != CastPolicy::follow) return wanted(policy, op).value();
    // What it is told to make. A network that casts to f32 means it.
    if (const Argument* dtype = find_argument(op, "dtype"))
      if (const auto* given = std::get_if<DType>(dtype)) return *given;
    const auto name = program::parts_of(op.target).name;
    if (follows_first(name) || !alias_of(op).empty()) return first_dtype(op);
    bool any = false;
    for (const ValueId id : references(op)) any = any || is_castable(id);
    return any ? widest(op) : DType::f32;
  }

  void cast_in(Argument& argument, DType to, const Op& op) {
    if (auto* reference = std::get_if<Reference>(&argument)) {
      // What is written stays what it is.
      for (const ValueId id : written_values(op))
        if (id == reference->value) return;
      if (is_castable(reference->value)) reference->value = cast(reference->value, to);
    }
    if (auto* list = std::get_if<program::List>(&argument))
      for (auto& element : *list) cast_in(element, to, op);
  }

  ValueId cast(ValueId id, DType to) {
    if (editor_.value(id).dtype == to) return id;
    const bool keep = !written_[static_cast<size_t>(id)];  // else it may change before the next use
    if (const auto found = casts_.find(id); keep && found != casts_.end()) return found->second;
    const Value& value = editor_.value(id);
    Value made{.name = value.name + (to == DType::bf16 ? ".bf16" : ".f32"),
               .dtype = to,
               .sizes = value.sizes};
    const ValueId result = editor_.add_value(std::move(made));
    written_.push_back(false);
    ops_.push_back({.target = "aten.to.dtype",
                    .arguments = {{"self", Reference{id}}, {"dtype", to}},
                    .outputs = {result},
                    .module = module_});
    if (keep) casts_[id] = result;
    return result;
  }

  Editor& editor_;
  std::vector<Op> ops_;
  std::vector<bool> written_;
  std::map<ValueId, ValueId> casts_;  // of values that are not written
  std::string module_;                // of the operation that is being written
  std::vector<std::string> in_bf16_;
};

}  // namespace

void use_bf16(Editor& editor, std::vector<Applied>& applied) {
  Caster caster(editor);
  for (int place = 0; place < editor.places(); ++place)
    if (!editor.is_empty(place)) caster.add(Op(editor.op(place)));
  caster.finish();
  for (const std::string& module : caster.in_bf16()) applied.push_back({"bf16", module});
}

}  // namespace renkei::rewrite
