// Programs written by hand, layer by layer, with the operations that torch.export gives.
#pragma once

#include <algorithm>
#include <map>

#include "program/program.h"
#include "rewrite/rewrite.h"

namespace renkei::rewrite {

using namespace program;  // NOLINT: tests are about programs

class Sketch {
 public:
  Sketch() { program.symbols = {{.name = "batch", .batch = true}}; }

  Program program;
  const Size batch = Size::expression("batch");

  ValueId value(std::string name, std::vector<Size> sizes, DType dtype = DType::f32) {
    program.values.push_back({.name = std::move(name), .dtype = dtype, .sizes = std::move(sizes)});
    return static_cast<ValueId>(program.values.size()) - 1;
  }
  ValueId input(std::string name, std::vector<Size> sizes) {
    const ValueId id = value(name, std::move(sizes));
    program.inputs.push_back({std::move(name), id});
    return id;
  }
  ValueId image(int64_t channels, int64_t pixels) {
    return input("x", {batch, channels, pixels, pixels});
  }
  ValueId state(const std::string& name, std::vector<Size> sizes,
                StateKind kind = StateKind::parameter, DType dtype = DType::f32) {
    const ValueId id = value(name, std::move(sizes), dtype);
    const auto after = std::find_if(program.state.begin(), program.state.end(),
                                    [&](const State& other) { return other.kind > kind; });
    program.state.insert(after, {.name = name, .kind = kind, .value = id});
    return id;
  }
  ValueId op(std::string target, std::vector<NamedArgument> arguments, std::vector<Size> sizes,
             const std::string& module = "") {
    const ValueId result = value(target + std::to_string(program.ops.size()), std::move(sizes));
    program.ops.push_back({.target = std::move(target),
                           .arguments = std::move(arguments),
                           .outputs = {result},
                           .module = module});
    return result;
  }
  const std::vector<Size>& sizes(ValueId id) const { return program.value(id).sizes; }

  ValueId conv(const std::string& name, ValueId x, int64_t channels, int64_t kernel = 3,
               int64_t stride = 1, int64_t groups = 1) {
    const std::vector<Size> from = sizes(x);
    const ValueId weight =
        state(name + ".weight", {channels, from[1].number() / groups, kernel, kernel});
    const int64_t padding = kernel / 2;
    const int64_t to = (from[2].number() + 2 * padding - kernel) / stride + 1;
    return op("aten.conv2d.default",
              {{"input", Reference{x}},
               {"weight", Reference{weight}},
               {"bias", None{}},
               {"stride", List{stride, stride}},
               {"padding", List{padding, padding}},
               {"dilation", List{int64_t{1}, int64_t{1}}},
               {"groups", groups}},
              {from[0], channels, to, to}, name);
  }
  ValueId batch_norm(const std::string& name, ValueId x, bool training = true) {
    const Size channels = sizes(x)[1];
    const ValueId gamma = state(name + ".weight", {channels});
    const ValueId beta = state(name + ".bias", {channels});
    const ValueId mean = state(name + ".running_mean", {channels}, StateKind::buffer);
    const ValueId variance = state(name + ".running_var", {channels}, StateKind::buffer);
    const ValueId count = state(name + ".num_batches_tracked", {}, StateKind::buffer, DType::i64);
    if (training)
      op("aten.add_.Tensor", {{"self", Reference{count}}, {"other", int64_t{1}}}, {}, name);
    return op("aten.batch_norm.default",
              {{"input", Reference{x}},
               {"weight", Reference{gamma}},
               {"bias", Reference{beta}},
               {"running_mean", Reference{mean}},
               {"running_var", Reference{variance}},
               {"training", training},
               {"momentum", 0.1},
               {"eps", 1e-5},
               {"cudnn_enabled", false}},
              std::vector<Size>(sizes(x)), name);
  }
  ValueId unary(const std::string& name, ValueId x) {  // "relu", "relu_", "silu_" …
    return op("aten." + name + ".default", {{"self", Reference{x}}}, std::vector<Size>(sizes(x)));
  }
  ValueId relu(ValueId x) { return unary("relu", x); }
  ValueId relu_(ValueId x) { return unary("relu_", x); }
  ValueId binary(const std::string& name, ValueId a, ValueId b) {  // "add", "mul_" …
    return op("aten." + name + ".Tensor", {{"self", Reference{a}}, {"other", Reference{b}}},
              std::vector<Size>(sizes(a)));
  }
  ValueId max_pool(ValueId x, int64_t kernel, int64_t stride, int64_t padding = 0,
                   bool ceil = false) {
    const std::vector<Size> from = sizes(x);
    const int64_t span = from[2].number() + 2 * padding - kernel + (ceil ? stride - 1 : 0);
    const int64_t to = span / stride + 1;
    return op("aten.max_pool2d.default",
              {{"self", Reference{x}},
               {"kernel_size", List{kernel, kernel}},
               {"stride", List{stride, stride}},
               {"padding", List{padding, padding}},
               {"dilation", List{int64_t{1}, int64_t{1}}},
               {"ceil_mode", ceil}},
              {from[0], from[1], to, to});
  }
  ValueId global_pool(ValueId x) {
    return op("aten.adaptive_avg_pool2d.default",
              {{"self", Reference{x}}, {"output_size", List{int64_t{1}, int64_t{1}}}},
              {sizes(x)[0], sizes(x)[1], 1, 1});
  }
  ValueId flatten(ValueId x) {
    const std::vector<Size> from = sizes(x);
    return op("aten.flatten.using_ints", {{"self", Reference{x}}, {"start_dim", int64_t{1}}},
              {from[0], from[1] * from[2] * from[3]});
  }
  ValueId linear(const std::string& name, ValueId x, int64_t features, bool bias = true) {
    std::vector<Size> to = sizes(x);
    const ValueId weight = state(name + ".weight", {features, to.back()});
    const Argument given = bias ? Argument(Reference{state(name + ".bias", {features})}) : None{};
    to.back() = features;
    return op("aten.linear.default",
              {{"input", Reference{x}}, {"weight", Reference{weight}}, {"bias", given}}, to, name);
  }
  void output(ValueId id) {
    program.outputs.push_back({"y" + std::to_string(program.outputs.size()), id});
  }
};

using Counts = std::map<std::string, int>;

inline Counts count_targets(const Program& program) {
  Counts counts;
  for (const Op& op : program.ops) ++counts[op.target];
  return counts;
}

inline int count(const Program& program, const std::string& target) {
  return count_targets(program)[target];
}

inline std::string why_not(const Rewritten& rewritten, const std::string& where) {
  for (const Applied& applied : rewritten.applied)
    if (applied.where == where && !applied.why_not.empty()) return applied.why_not;
  return "";
}

}  // namespace renkei::rewrite
