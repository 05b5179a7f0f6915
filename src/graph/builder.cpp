#include "graph/builder.h"

#include "base/error.h"

namespace renkei::graph {
namespace {

constexpr int64_t kElementBytes = 4;

}  // namespace

Builder::Builder(std::string name, int64_t batch) {
  graph_.name = std::move(name);
  graph_.batch = batch;
}

ValueIndex Builder::input(std::string name, int64_t elements, bool gradient) {
  const auto index = static_cast<ValueIndex>(graph_.values.size());
  graph_.values.push_back({.id = fmt::format("{}", index),
                           .bytes = elements * kElementBytes * graph_.batch,
                           .gradient = gradient,
                           .name = std::move(name),
                           .dtype = "float32"});
  graph_.inputs.push_back(index);
  return index;
}

ParameterIndex Builder::parameter(std::string name, int64_t elements, bool trainable) {
  const auto index = static_cast<ParameterIndex>(graph_.parameters.size());
  graph_.parameters.push_back({.id = fmt::format("{}", index),
                               .name = std::move(name),
                               .bytes = elements * kElementBytes,
                               .trainable = trainable});
  return index;
}

int64_t Builder::keep(ValueIndex value) {
  return kept_.insert(value).second ? graph_.values[static_cast<size_t>(value)].bytes : 0;
}

ValueIndex Builder::op(OpOptions options) {
  const auto output = static_cast<ValueIndex>(graph_.values.size());
  const int64_t samples = options.scalar ? 1 : graph_.batch;
  graph_.values.push_back({.id = fmt::format("{}", output),
                           .bytes = options.elements * kElementBytes * samples,
                           .batch = !options.scalar,
                           .name = options.name,
                           .dtype = "float32"});
  Op op{.id = fmt::format("{}", graph_.ops.size()),
        .name = std::move(options.name),
        .kind = std::move(options.kind),
        .inputs = std::move(options.inputs),
        .outputs = {output},
        .parameters = std::move(options.parameters)};
  for (const ValueIndex value : options.saves) op.saved_bytes += keep(value);
  if (options.saves_output) op.saved_bytes += keep(output);
  op.deferred_bytes = op.saved_bytes;
  op.flops = options.flops * static_cast<double>(graph_.batch);
  for (const ValueIndex value : op.inputs)
    op.traffic_bytes += static_cast<double>(graph_.values[static_cast<size_t>(value)].bytes);
  for (const ParameterIndex parameter : op.parameters)
    op.traffic_bytes +=
        static_cast<double>(graph_.parameters[static_cast<size_t>(parameter)].bytes);
  op.traffic_bytes += static_cast<double>(graph_.values.back().bytes);
  graph_.ops.push_back(std::move(op));
  return output;
}

ValueIndex Builder::linear(const std::string& name, ValueIndex from, int64_t rows, int64_t in,
                           int64_t out) {
  const ParameterIndex weight = parameter(name + ".weight", in * out);
  const ParameterIndex bias = parameter(name + ".bias", out);
  return op({.name = name,
             .kind = "linear",
             .inputs = {from},
             .parameters = {weight, bias},
             .elements = rows * out,
             .flops = 2.0 * static_cast<double>(rows) * static_cast<double>(in * out),
             .saves = {from}});
}

ValueIndex Builder::pointwise(const std::string& name, const std::string& kind,
                              std::vector<ValueIndex> from, int64_t elements, bool saves_output) {
  return op({.name = name,
             .kind = kind,
             .inputs = std::move(from),
             .elements = elements,
             .flops = static_cast<double>(elements),
             .saves_output = saves_output});
}

ValueIndex Builder::conv(ValueIndex from, const ConvOptions& options) {
  const int64_t elements = options.out * options.pixels * options.pixels;
  const auto count = static_cast<double>(elements);
  const ParameterIndex weight =
      parameter(options.name + ".weight", options.in * options.out * options.taps);
  ValueIndex x = op({.name = options.name,
                     .kind = "conv2d",
                     .inputs = {from},
                     .parameters = {weight},
                     .elements = elements,
                     .flops = 2 * count * static_cast<double>(options.in * options.taps),
                     .saves = {from}});
  if (options.norm) {
    const std::string name = options.name + ".norm";
    const std::vector<ParameterIndex> parameters{
        parameter(name + ".weight", options.out), parameter(name + ".bias", options.out),
        parameter(name + ".running_mean", options.out, false),
        parameter(name + ".running_var", options.out, false)};
    x = op({.name = name,
            .kind = "batch_norm",
            .inputs = {x},
            .parameters = parameters,
            .elements = elements,
            .flops = 4 * count,
            .saves = {x}});
  }
  return options.relu ? pointwise(options.name + ".relu", "relu", {x}, elements, true) : x;
}

ValueIndex Builder::pool(const std::string& name, ValueIndex from, int64_t elements,
                         int64_t window) {
  return op({.name = name,
             .kind = "pool",
             .inputs = {from},
             .elements = elements,
             .flops = static_cast<double>(elements * window),
             .saves = {from}});
}

ValueIndex Builder::cross_entropy(ValueIndex scores, ValueIndex target, int64_t elements) {
  return op({.name = "loss",
             .kind = "cross_entropy",
             .inputs = {scores, target},
             .elements = 1,
             .flops = 5 * static_cast<double>(elements),
             .saves = {scores},
             .scalar = true});
}

Graph Builder::finish(ValueIndex output) {
  graph_.outputs = {output};
  check_and_sort(graph_, graph_.name);
  return std::move(graph_);
}

}  // namespace renkei::graph
