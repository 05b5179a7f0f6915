#include "rewrite/memory.h"

#include <set>

#include "rewrite/constants.h"

namespace renkei::rewrite {

using program::Op;
using program::ValueId;

namespace {
std::string_view name(const Op& op) {
  std::string_view t = op.target;
  t.remove_prefix(std::min(t.size(), t.find('.') + 1));
  return t.substr(0, t.find('.'));
}
bool in_place(const Op& op) {
  return name(op).ends_with('_') && !name(op).ends_with("__");
}
}  // namespace

std::vector<std::pair<ValueId, ValueId>> shared_memory(const Op& op) {
  static const std::set<std::string_view> views{
      "view",      "reshape",   "flatten", "transpose", "permute",    "t",      "select",
      "slice",     "unsqueeze", "squeeze", "expand",    "contiguous", "detach", "to",
      "unflatten", "chunk",     "split",   "unbind",    "narrow"};
  std::vector<std::pair<ValueId, ValueId>> pairs;
  if (in_place(op) || views.contains(name(op)))
    for (ValueId o : op.outputs)
      if (o != program::kNoValue && value_of(op, "self") != program::kNoValue)
        pairs.emplace_back(o, value_of(op, "self"));
  return pairs;
}

std::vector<ValueId> written_by(const Op& op) {
  std::vector<ValueId> w;
  if (in_place(op) && value_of(op, "self") != program::kNoValue) w.push_back(value_of(op, "self"));
  if (op.target == "aten.batch_norm.default" && boolean_of(op, "training") == true)
    for (auto n : {"running_mean", "running_var"})
      if (!is_absent(op, n)) w.push_back(value_of(op, n));
  if (op.target == "renkei.batch_norm.default")
    for (auto n : {"running_mean", "running_variance", "batches"})
      if (!is_absent(op, n)) w.push_back(value_of(op, n));
  return w;
}

bool draws_random_numbers(const Op& op) {
  return name(op).starts_with("dropout") || name(op).starts_with("bernoulli") ||
         name(op).starts_with("rand");
}
}  // namespace renkei::rewrite
