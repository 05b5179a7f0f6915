// In place or not.
//
// A network says relu_(x) to save memory. Where the fused kernels do the ReLU on the way, nothing
// is left to be saved, and what is in place stands in the way of every other rewrite: so operations
// in place on values that the program itself made, whose memory nobody reads later under another
// name (a view), first become operations with a result of their own. Those who read x later read
// that result, which is what they saw before. At the end those that no rewrite has touched become
// operations in place again, if nobody else reads what they overwrite.
#include <algorithm>
#include <string>

#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {
namespace {

constexpr const char* kUnary[] = {"relu",    "relu6",     "hardtanh",    "leaky_relu",
                                  "elu",     "silu",      "mish",        "tanh",
                                  "sigmoid", "hardswish", "hardsigmoid", "dropout"};
constexpr const char* kBinary[] = {"add", "sub", "mul", "div"};

struct Twins {
  std::string in_place, functional;
};

const std::vector<Twins>& twins() {
  static const auto table = [] {
    std::vector<Twins> made;
    const auto add = [&](const std::string& name, const std::string& overload) {
      made.push_back({"aten." + name + "_." + overload, "aten." + name + "." + overload});
    };
    for (const char* name : kUnary) add(name, "default");
    for (const char* name : kBinary) add(name, "Tensor");
    return made;
  }();
  return table;
}

// Dropout calls its argument `input`, and dropout_ calls it `self`.
void rename_argument(Op& op, std::string_view from, std::string_view to) {
  for (auto& argument : op.arguments)
    if (argument.name == from) argument.name = to;
}

bool is_of_same_kind(const Value& a, const Value& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes;
}

// Its memory is the program's own, and is read at a later place under this name only.
bool is_read_later_by_name_only(const Editor& editor, ValueId id, int place) {
  if (editor.producer(id) < 0) return false;
  const auto others = editor.sharing_memory_with(id);
  return std::all_of(others.begin(), others.end(), [&](ValueId other) {
    const int producer = editor.producer(other);
    if (producer >= place) return true;  // made of what is written here
    const auto users = editor.users(other);
    return producer >= 0 && !editor.is_output(other) && (users.empty() || users.back() <= place);
  });
}

}  // namespace

std::vector<WasInPlace> make_functional(Editor& editor) {
  std::vector<WasInPlace> made;
  for (int place = 0; place < editor.places(); ++place) {
    Op op = editor.op(place);
    const auto twin = std::find_if(twins().begin(), twins().end(),
                                   [&](const Twins& t) { return t.in_place == op.target; });
    const ValueId self = value_of(op, "self");
    if (twin == twins().end() || self == program::kNoValue || op.outputs.size() != 1) continue;
    if (!is_read_later_by_name_only(editor, self, place)) continue;
    // A result that nobody mentions: what follows reads the value that is overwritten.
    if (op.outputs[0] == program::kNoValue) op.outputs[0] = editor.add_value(editor.value(self));
    const ValueId result = op.outputs[0];
    if (!is_of_same_kind(editor.value(self), editor.value(result))) continue;
    op.target = twin->functional;
    if (op.target == "aten.dropout.default") rename_argument(op, "self", "input");
    editor.replace(place, op);
    editor.replace_uses(self, result, place);
    made.push_back({self, result});
  }
  return made;
}

void make_in_place(Editor& editor, const std::vector<WasInPlace>& operations) {
  // The last first: of a chain in place, each has a value of its own while it is looked at.
  for (auto last = operations.rbegin(); last != operations.rend(); ++last) {
    const auto [self, result] = *last;
    const int place = editor.producer(result), before = editor.producer(self);
    if (place < 0 || before < 0 || editor.only_user(self) != place ||
        !editor.sharing_memory_with(self).empty())
      continue;
    // Our kernels may keep their result for the gradient.
    if (!editor.op(before).target.starts_with("aten.")) continue;
    Op op = editor.op(place);
    const auto twin = std::find_if(twins().begin(), twins().end(),
                                   [&](const Twins& t) { return t.functional == op.target; });
    if (twin == twins().end()) continue;
    if (op.target == "aten.dropout.default") rename_argument(op, "input", "self");
    if (value_of(op, "self") != self) continue;
    op.target = twin->in_place;
    editor.replace(place, std::move(op));
  }
}

}  // namespace renkei::rewrite
