#include "model/layer_costs.h"

#include <ATen/record_function.h>

#include <map>
#include <unordered_map>

#include "model/compute_options.h"

namespace renkei::model {
namespace {

constexpr int64_t kBatch = 2;  // the least that batch normalisation can be trained with

// Torch's operations that count as a layer.
const std::map<std::string_view, std::string>& kinds() {
  static const std::map<std::string_view, std::string> names{
      {"aten::_convolution", "convolution"},
      {"aten::linear", "linear"},
      {"aten::addmm", "linear"},
      {"aten::mm", "matrix product"},
      {"aten::bmm", "matrix product"},
      {"aten::matmul", "matrix product"},
      {"aten::batch_norm", "batch norm"},
      {"aten::layer_norm", "layer norm"},
      {"aten::embedding", "embedding"},
      {"aten::relu", "ReLU"},
      {"aten::relu_", "ReLU"},
      {"aten::hardtanh", "hardtanh"},
      {"aten::hardtanh_", "hardtanh"},
      {"aten::hardswish", "hardswish"},
      {"aten::hardswish_", "hardswish"},
      {"aten::silu", "SiLU"},
      {"aten::silu_", "SiLU"},
      {"aten::gelu", "GELU"},
      {"aten::softmax", "softmax"},
      {"aten::max_pool2d", "max pool"},
      {"aten::avg_pool2d", "average pool"},
      {"aten::adaptive_avg_pool2d", "average pool"},
      {"aten::mean", "mean"},
      {"aten::dropout", "dropout"},
      {"aten::dropout_", "dropout"},
      {"aten::cat", "concatenation"},
      {"aten::add", "addition"},
      {"aten::add_", "addition"},
      {"aten::mul", "product"}};
  return names;
}

struct Watcher {
  std::unordered_map<const void*, std::pair<std::string, int64_t>> parameters;  // name, size
  std::vector<LayerCost> layers;
  int depth = 0;  // inside a layer: what it calls is not another one
};
thread_local Watcher* watcher = nullptr;

// What is known when an operation starts, kept until it ends.
struct Started : at::ObserverContext {
  std::vector<torch::Tensor> tensors;
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  if (!watcher || !kinds().contains(function.name())) return nullptr;
  if (watcher->depth++ > 0) return std::make_unique<Started>();
  auto started = std::make_unique<Started>();
  for (const c10::IValue& input : function.inputs()) {
    if (input.isTensor() && input.toTensor().defined())
      started->tensors.push_back(input.toTensor());
    if (input.isTensorList())
      for (const torch::Tensor& tensor : input.toTensorVector()) started->tensors.push_back(tensor);
  }
  return started;
}

int64_t flops_of(std::string_view operation, const std::vector<torch::Tensor>& inputs,
                 const torch::Tensor& output) {
  if (operation == "aten::_convolution" || operation == "aten::linear")
    return 2 * output.numel() * inputs[1].numel() / inputs[1].size(0);
  if (operation == "aten::addmm") return 2 * output.numel() * inputs[1].size(-1);
  if (operation == "aten::mm" || operation == "aten::bmm" || operation == "aten::matmul")
    return 2 * output.numel() * inputs[0].size(-1);
  return 0;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (!context) return;
  if (--watcher->depth > 0 || function.outputs().empty()) return;
  const c10::IValue& result = function.outputs()[0];
  const auto& inputs = static_cast<Started*>(context)->tensors;
  if (!result.isTensor() || inputs.empty()) return;
  const torch::Tensor& output = result.toTensor();
  LayerCost layer{.name = {}, .kind = kinds().at(function.name()), .output_shape = {}};
  bool overwrites = false;
  for (const torch::Tensor& input : inputs) {
    overwrites |= input.data_ptr() == output.data_ptr();
    const auto found = watcher->parameters.find(input.data_ptr());
    if (found == watcher->parameters.end()) continue;
    if (layer.name.empty())
      layer.name = found->second.first.substr(0, found->second.first.rfind('.'));
    layer.parameters += std::exchange(found->second.second, 0);  // a tied one counts once
  }
  const bool has_batch = output.dim() > 0 && output.size(0) % kBatch == 0;
  if (!has_batch) return;  // arithmetic on shapes and the like
  layer.output_shape = output.sizes().vec();
  layer.output_shape.erase(layer.output_shape.begin());
  layer.flops = flops_of(function.name(), inputs, output) / kBatch;
  layer.activation_bytes = overwrites ? 0 : static_cast<int64_t>(output.nbytes()) / kBatch;
  watcher->layers.push_back(std::move(layer));
}

}  // namespace

std::vector<LayerCost> layer_costs(Network& network) {
  const ComputeOptions before = compute_options();
  compute_options().blocked_layout = false;  // fused kernels hide what they compute
  Watcher watching;
  for (const auto& named : network.named_parameters())
    watching.parameters[named.value().data_ptr()] = {named.key(), named.value().numel()};
  std::vector<int64_t> shape = network.input_shape();
  shape.insert(shape.begin(), kBatch);
  network.train();
  watcher = &watching;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end)
                                                     .needsInputs(true)
                                                     .needsOutputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  try {
    network.forward_all(torch::zeros(shape));
  } catch (...) {
    at::removeCallback(handle);
    watcher = nullptr;
    throw;
  }
  at::removeCallback(handle);
  watcher = nullptr;
  compute_options() = before;
  return std::move(watching.layers);
}

}  // namespace renkei::model
