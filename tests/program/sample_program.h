// A small program for tests: y = relu(conv(x)) with a batch norm between.
#pragma once

#include "program/program.h"

namespace renkei::program {

inline Program sample_program() {
  const Size batch = Size::expression("batch");
  Program program{.name = "sample",
                  .symbols = {{.name = "batch", .low = 1, .high = 1024, .batch = true}}};
  const auto value = [&](std::string name, std::vector<Size> sizes, DType dtype = DType::f32) {
    program.values.push_back({.name = std::move(name), .dtype = dtype, .sizes = std::move(sizes)});
    return static_cast<ValueId>(program.values.size()) - 1;
  };
  const auto state = [&](std::string name, StateKind kind, std::vector<Size> sizes, Initial initial,
                         DType dtype = DType::f32) {
    const ValueId id = value(name, std::move(sizes), dtype);
    program.state.push_back(
        {.name = std::move(name), .kind = kind, .value = id, .initial = initial});
    return id;
  };
  const Initial one{.kind = Initial::Kind::constant, .a = 1};
  const Initial zero{.kind = Initial::Kind::constant};
  const ValueId weight = state("conv.weight", StateKind::parameter, {4, 3, 3, 3},
                               {.kind = Initial::Kind::uniform, .a = -0.1, .b = 0.1});
  const ValueId gamma = state("norm.weight", StateKind::parameter, {4}, one);
  const ValueId beta = state("norm.bias", StateKind::parameter, {4}, zero);
  const ValueId mean = state("norm.running_mean", StateKind::buffer, {4}, zero);
  const ValueId variance = state("norm.running_var", StateKind::buffer, {4}, one);
  const ValueId count = state("norm.num_batches_tracked", StateKind::buffer, {}, zero, DType::i64);
  const ValueId x = value("x", {batch, 3, 8, 8});
  program.inputs = {{"x", x}};

  const auto op = [&](std::string target, std::vector<NamedArgument> arguments, ValueId output,
                      std::string module) {
    program.ops.push_back({.target = std::move(target),
                           .arguments = std::move(arguments),
                           .outputs = {output},
                           .module = std::move(module),
                           .source = "net.py:12 in forward"});
    return output;
  };
  const ValueId convolved = op("aten.conv2d.default",
                               {{"input", Reference{x}},
                                {"weight", Reference{weight}},
                                {"stride", List{int64_t{1}, int64_t{1}}},
                                {"padding", List{int64_t{1}, int64_t{1}}}},
                               value("conv2d", {batch, 4, 8, 8}), "conv");
  op("aten.add_.Tensor", {{"self", Reference{count}}, {"other", int64_t{1}}},
     value("add_", {}, DType::i64), "norm");
  const ValueId normed = op("aten.batch_norm.default",
                            {{"input", Reference{convolved}},
                             {"weight", Reference{gamma}},
                             {"bias", Reference{beta}},
                             {"running_mean", Reference{mean}},
                             {"running_var", Reference{variance}},
                             {"training", true},
                             {"momentum", 0.1},
                             {"eps", 1e-5},
                             {"cudnn_enabled", true}},
                            value("batch_norm", {batch, 4, 8, 8}), "norm");
  const ValueId active = op("aten.relu_.default", {{"self", Reference{normed}}},
                            value("relu_", {batch, 4, 8, 8}), "relu");
  const ValueId dropped =
      op("aten.dropout.default", {{"input", Reference{active}}, {"p", 0.5}, {"train", true}},
         value("dropout", {batch, 4, 8, 8}), "dropout");
  const ValueId flat =
      op("aten.flatten.using_ints", {{"self", Reference{dropped}}, {"start_dim", int64_t{1}}},
         value("flatten", {batch, 256}), "");
  program.outputs = {{"y", flat}};
  return program;
}

}  // namespace renkei::program
