// GELU by its approximation, written out as GPT-2 and its descendants do:
//
//   0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
//
// Eight operations that each read and write the whole tensor, and keep most of what they made for
// the gradient, become aten.gelu with approximate = "tanh": the same formula, to rounding (1e-6).
#include <cmath>
#include <numbers>

#include "rewrite/constants.h"
#include "rewrite/patterns.h"

namespace renkei::rewrite {
namespace {

// A product or sum of a value and a number: the value, or kNoValue.
struct WithNumber {
  ValueId value = program::kNoValue;
  double number = 0;
};

class ComposedGelu {
 public:
  explicit ComposedGelu(const Editor& editor) : editor_(editor) {}

  // x, where `place` is the last product; kNoValue: it is something else. `parts` gets the others.
  ValueId match(int place, std::vector<int>& parts) {
    parts_.clear();
    const auto [a, b] = operands(place, "aten.mul.Tensor");
    if (a == program::kNoValue || b == program::kNoValue) return program::kNoValue;
    for (const auto& [half, rest] : {std::pair(a, b), std::pair(b, a)}) {
      parts_.clear();
      const WithNumber halved = with_number(half, "aten.mul.Tensor");
      if (halved.value == program::kNoValue || !is_near(halved.number, 0.5)) continue;
      if (!is_one_plus_tanh(rest, halved.value)) continue;
      parts = parts_;
      return halved.value;
    }
    return program::kNoValue;
  }

 private:
  static bool is_near(double a, double b) { return std::abs(a - b) < 1e-6; }

  std::pair<ValueId, ValueId> operands(int place, std::string_view target) const {
    if (place < 0 || !editor_.is(place, target) || real_of(editor_.op(place), "alpha", 1.0) != 1.0)
      return {program::kNoValue, program::kNoValue};
    return {value_of(editor_.op(place), "self"), value_of(editor_.op(place), "other")};
  }

  // Made by an operation whose result nobody else reads.
  int inner(ValueId id) {
    const int place = id == program::kNoValue ? -1 : editor_.producer(id);
    if (place < 0 || editor_.only_user(id) < 0) return -1;
    parts_.push_back(place);
    return place;
  }

  WithNumber with_number(ValueId id, std::string_view target) {
    const int place = inner(id);
    if (place < 0 || !editor_.is(place, target)) return {};
    const auto number = real_of(editor_.op(place), "other");
    if (!number || real_of(editor_.op(place), "alpha", 1.0) != 1.0) return {};
    return {value_of(editor_.op(place), "self"), *number};
  }

  bool is_one_plus_tanh(ValueId id, ValueId x) {
    const WithNumber plus_one = with_number(id, "aten.add.Tensor");
    if (plus_one.value == program::kNoValue || plus_one.number != 1) return false;
    const int tanh = inner(plus_one.value);
    if (tanh < 0 || !editor_.is(tanh, "aten.tanh.default")) return false;
    const WithNumber scaled = with_number(value_of(editor_.op(tanh), "self"), "aten.mul.Tensor");
    return scaled.value != program::kNoValue &&
           is_near(scaled.number, std::sqrt(2 / std::numbers::pi)) && is_cubic(scaled.value, x);
  }

  // x + 0.044715 x³
  bool is_cubic(ValueId id, ValueId x) {
    const auto [self, other] = operands(inner(id), "aten.add.Tensor");
    if (self != x) return false;
    const WithNumber scaled = with_number(other, "aten.mul.Tensor");
    if (scaled.value == program::kNoValue || !is_near(scaled.number, 0.044715)) return false;
    const int power = inner(scaled.value);
    return power >= 0 && editor_.is(power, "aten.pow.Tensor_Scalar") &&
           value_of(editor_.op(power), "self") == x &&
           real_of(editor_.op(power), "exponent") == 3.0;
  }

  const Editor& editor_;
  std::vector<int> parts_;
};

}  // namespace

void find_composed_gelu(Editor& editor, std::vector<Applied>& applied) {
  for (int place = 0; place < editor.places(); ++place) {
    std::vector<int> parts;
    const ValueId x = ComposedGelu(editor).match(place, parts);
    if (x == program::kNoValue || editor.is_written(x)) continue;
    Op gelu = editor.op(place);
    gelu.target = "aten.gelu.default";
    gelu.arguments = {{"self", program::Reference{x}}, {"approximate", std::string("tanh")}};
    applied.push_back({"GELU written out", editor.where(place)});
    for (const int part : parts) editor.erase(part);
    editor.replace(place, std::move(gelu));
  }
}

}  // namespace renkei::rewrite
