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
      segments_(network.segments(place_.number)),
      micro_batches_(static_cast<size_t>(micro_batches)) {
  for (const Segment& segment : segments_)
    for (const Body::Input& input : segment.body.inputs())
      if (input.from_batch() && std::ranges::count(fields_, input.field) == 0)
        fields_.push_back(input.field);
}

std::vector<torch::Tensor> Stage::compute(const Segment& segment, MicroBatch& micro,
                                          bool with_gradients, Body::Pass pass,
                                          ExecutionContext& context) {
  const torch::AutoGradMode gradients(with_gradients);
  std::vector<torch::Tensor> inputs;
  for (const Body::Input& input : segment.body.inputs()) {
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
  return segment.body.run(inputs, micro.samples, pass, context);
}

void Stage::forward(MicroBatch& micro, Mode mode, ExecutionContext& context) {
  const bool gradients = mode == Mode::training && !place_.recompute;
  const Body::Pass pass = micro.changes_buffers ? Body::Pass::first : Body::Pass::again;
  for (const Segment& segment : segments_) {
    const auto made = compute(segment, micro, gradients, pass, context);
    for (size_t i = 0; i < made.size(); ++i) {
      const int value = segment.made[i];
      if (segment.kept[i]) micro.received[value] = made[i];
      if (std::ranges::count(values().made, value) > 0) micro.made[value] = made[i];
    }
  }
}

void Stage::backward(MicroBatch& micro, std::optional<double> loss_gradient, Part part,
                     ExecutionContext& context) {
  if (part == Part::inputs) micro.put_off = std::make_unique<DeferredGradients>();
  context.deferred = micro.put_off.get();
  for (size_t s = segments_.size(); s-- > 0;) backward(segments_[s], micro, loss_gradient, context);
  context.deferred = nullptr;

  for (const int value : values().incoming) {
    if (!network_.has_gradient(value)) continue;
    const auto found = micro.gradients.find(value);
    micro.input_gradients[value] = found == micro.gradients.end()
                                       ? torch::zeros_like(micro.received.at(value))
                                       : found->second;
  }
  micro.received.clear();
  micro.gradients.clear();
  micro.output_gradients.clear();
  micro.batch = {};
}

void Stage::backward(const Segment& segment, MicroBatch& micro, std::optional<double> loss_gradient,
                     ExecutionContext& context) {
  if (place_.recompute) {
    for (const int value : segment.made) micro.received.erase(value);  // later ones are done
    const auto made = compute(segment, micro, true, Body::Pass::again, context);
    micro.made.clear();
    for (size_t i = 0; i < made.size(); ++i) micro.made[segment.made[i]] = made[i];
  }
  std::vector<torch::Tensor> roots, seeds;
  for (const auto& [value, tensor] : micro.made) {
    if (!tensor.requires_grad()) continue;
    if (loss_gradient && value == network_.outputs().front()) {
      roots.push_back(tensor);
      seeds.push_back(gradient_of_loss(tensor, *loss_gradient));
    }
    for (const CrossingValues* given : {&micro.gradients, &micro.output_gradients})
      if (const auto found = given->find(value); found != given->end()) {
        roots.push_back(tensor);
        seeds.push_back(found->second);
      }
  }
  for (const auto& [value, inner] : micro.inner)
    if (const auto found = micro.gradients.find(value); found != micro.gradients.end()) {
      roots.push_back(inner);
      seeds.push_back(found->second);
    }
  if (!roots.empty()) torch::autograd::backward(roots, seeds);
  for (const int value : segment.made) micro.gradients.erase(value);
  for (const auto& [value, leaf] : micro.leaves)
    if (leaf.grad().defined()) micro.gradients[value] = leaf.grad();
  micro.made.clear();
  micro.inner.clear();
  micro.leaves.clear();
}

CrossingValues Stage::outgoing(const MicroBatch& micro) const {
  CrossingValues tensors;
  for (const int value : values().outgoing) {
    const auto made = micro.made.find(value);
    tensors[value] = made == micro.made.end() ? micro.received.at(value) : made->second.detach();
  }
  return tensors;
}

torch::Tensor Stage::result(const MicroBatch& micro, size_t number) const {
  const auto made = micro.made.find(network_.outputs()[number]);
  return made == micro.made.end() ? torch::Tensor() : made->second;
}

std::optional<double> Stage::output(const MicroBatch& micro, size_t number) const {
  const torch::Tensor made = result(micro, number);
  return made.defined() ? std::optional(made.item<double>()) : std::nullopt;
}

}  // namespace renkei::run
