#include "model/op_work.h"

#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace renkei::model {
namespace {

struct TensorShape {
  std::vector<int64_t> sides;
  double count = 1;
  double bytes = 0;
};

std::optional<TensorShape> shape_of(const torch::jit::Value* value) {
  const auto type = value->type()->cast<c10::TensorType>();
  if (!type || !type->scalarType()) return {};
  const auto sizes = type->sizes().concrete_sizes();
  if (!sizes) return {};
  TensorShape shape{.sides = *sizes};
  for (const int64_t side : *sizes) shape.count *= static_cast<double>(side);
  shape.bytes = shape.count * static_cast<double>(c10::elementSize(*type->scalarType()));
  return shape;
}

// The products that each value of the result is a sum of; 0: it is none.
double products_per_value(std::string_view kind, const torch::jit::Node* node) {
  const auto side = [&](size_t input, int dimension) -> double {
    const auto shape = input < node->inputs().size() ? shape_of(node->input(input)) : std::nullopt;
    if (!shape || shape->sides.empty()) return 0;
    const auto count = static_cast<int>(shape->sides.size());
    return static_cast<double>(
        shape->sides[static_cast<size_t>(dimension < 0 ? count + dimension : dimension)]);
  };
  if (kind.find("conv") != std::string_view::npos) {
    const auto weight = shape_of(node->input(1));
    return weight && !weight->sides.empty() ? weight->count / static_cast<double>(weight->sides[0])
                                            : 0;
  }
  if (kind.ends_with("::linear")) return side(1, -1);
  if (kind == "aten::addmm" || kind == "aten::baddbmm") return side(1, -1);
  if (kind == "aten::mm" || kind == "aten::bmm" || kind == "aten::matmul") return side(0, -1);
  return 0;
}

bool is_view(std::string_view kind) {
  static const std::set<std::string_view> views{
      "aten::view",      "aten::reshape", "aten::flatten",   "aten::permute", "aten::transpose",
      "aten::t",         "aten::narrow",  "aten::select",    "aten::slice",   "aten::unsqueeze",
      "aten::squeeze",   "aten::expand",  "aten::chunk",     "aten::split",   "aten::unbind",
      "aten::unflatten", "aten::detach",  "prim::ListUnpack"};
  return views.contains(kind);
}

}  // namespace

Work work_of(const torch::jit::Node* node) {
  const std::string_view kind = node->kind().toQualString();
  if (is_view(kind)) return {};
  Work work;
  double made = 0;
  for (const torch::jit::Value* output : node->outputs())
    if (const auto shape = shape_of(output)) {
      made += shape->count;
      work.made_bytes += static_cast<int64_t>(shape->bytes);
    }
  work.traffic_bytes = static_cast<double>(work.made_bytes);
  for (const torch::jit::Value* input : node->inputs())
    if (const auto shape = shape_of(input)) work.traffic_bytes += shape->bytes;
  const double products = products_per_value(kind, node);
  work.flops = made * (products > 0 ? 2 * products : 1);
  return work;
}

}  // namespace renkei::model
