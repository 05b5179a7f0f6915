#include "run/stage.h"

#include <algorithm>

namespace renkei::run {
namespace {

// A loss scale may be more than the type can hold: then gradients are infinite, and the step is
// left out.
torch::Tensor gradient_of_loss(const torch::Tensor& loss, double gradient) {
  const bool narrow = loss.scalar_type() != torch::kFloat64;
  return torch::full_like(loss,
                          narrow ? static_cast<double>(static_cast<float>(gradient)) : gradient);
}

}  // namespace

Stage::Stage(Place place, const StagedNetwork& network, int micro_batches)
    : place_(std::move(place)),
      network_(network),
      body_(network.body(place_.number)),
      micro_batches_(static_cast<size_t>(micro_batches)) {
  for (const Body::Input& input : body_.inputs())
    if (input.from_batch()) fields_.push_back(input.field);
}

std::vector<torch::Tensor> Stage::compute(MicroBatch& micro, bool with_gradients, Body::Pass pass,
                                          ExecutionContext& context) {
  const torch::AutoGradMode gradients(with_gradients);
  std::vector<torch::Tensor> inputs;
  for (const Body::Input& input : body_.inputs()) {
    if (input.from_batch()) {
      inputs.push_back(micro.batch.input(input.field));
      continue;
    }
    const torch::Tensor& received = micro.received.at(input.value);
    if (!with_gradients || !network_.has_gradient(input.value)) {
      inputs.push_back(received);
      continue;
    }
    torch::Tensor leaf = received.detach().requires_grad_();
    // A node of its own, in which gradients of later stages and of this one meet.
    torch::Tensor inner = leaf.view_as(leaf);
    inputs.push_back(inner);
    micro.leaves[input.value] = std::move(leaf);
    micro.inner[input.value] = std::move(inner);
  }
  context.random = micro.random;
  context.tensor.samples = micro.samples;
  context.tensor.step = micro.random.step;
  return body_.run(inputs, micro.samples, pass, context);
}

void Stage::forward(MicroBatch& micro, Mode mode, ExecutionContext& context) {
  const bool gradients = mode == Mode::training && !place_.recompute;
  micro.made = compute(micro, gradients,
                       micro.changes_buffers ? Body::Pass::first : Body::Pass::again, context);
}

void Stage::backward(MicroBatch& micro, std::optional<double> loss_gradient, Part part,
                     ExecutionContext& context) {
  if (place_.recompute) micro.made = compute(micro, true, Body::Pass::again, context);
  std::vector<torch::Tensor> roots, seeds;
  for (size_t i = 0; i < micro.made.size(); ++i) {
    if (!micro.made[i].requires_grad()) continue;
    const int value = values().made[i];
    if (loss_gradient && value == network_.outputs().front()) {
      roots.push_back(micro.made[i]);
      seeds.push_back(gradient_of_loss(micro.made[i], *loss_gradient));
    }
    for (const CrossingValues* given : {&micro.gradients, &micro.output_gradients})
      if (const auto found = given->find(value); found != given->end()) {
        roots.push_back(micro.made[i]);
        seeds.push_back(found->second);
      }
  }
  for (const auto& [value, inner] : micro.inner)
    if (const auto found = micro.gradients.find(value); found != micro.gradients.end()) {
      roots.push_back(inner);
      seeds.push_back(found->second);
    }
  if (part == Part::inputs) micro.put_off = std::make_unique<DeferredGradients>();
  context.deferred = micro.put_off.get();
  if (!roots.empty()) torch::autograd::backward(roots, seeds);
  context.deferred = nullptr;

  for (const int value : values().incoming) {
    if (!network_.has_gradient(value)) continue;
    torch::Tensor gradient;
    if (const auto leaf = micro.leaves.find(value); leaf != micro.leaves.end())
      gradient = leaf->second.grad();
    else if (const auto passed = micro.gradients.find(value); passed != micro.gradients.end())
      gradient = passed->second;
    micro.input_gradients[value] =
        gradient.defined() ? gradient : torch::zeros_like(micro.received.at(value));
  }
  micro.made.clear();
  micro.inner.clear();
  micro.leaves.clear();
  micro.received.clear();
  micro.gradients.clear();
  micro.output_gradients.clear();
  micro.batch = {};
}

CrossingValues Stage::outgoing(const MicroBatch& micro) const {
  CrossingValues tensors;
  for (const int value : values().outgoing) {
    const auto made = std::ranges::find(values().made, value);
    tensors[value] = made == values().made.end()
                         ? micro.received.at(value)
                         : micro.made[static_cast<size_t>(made - values().made.begin())].detach();
  }
  return tensors;
}

torch::Tensor Stage::result(const MicroBatch& micro, size_t number) const {
  const auto made = std::ranges::find(values().made, network_.outputs()[number]);
  if (made == values().made.end()) return {};
  return micro.made[static_cast<size_t>(made - values().made.begin())];
}

std::optional<double> Stage::output(const MicroBatch& micro, size_t number) const {
  const torch::Tensor made = result(micro, number);
  return made.defined() ? std::optional(made.item<double>()) : std::nullopt;
}

}  // namespace renkei::run
