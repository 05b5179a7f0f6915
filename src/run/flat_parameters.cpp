#include "run/flat_parameters.h"

#include <fmt/format.h>

#include "base/error.h"

namespace renkei::run {
namespace {

constexpr int64_t kLineFloats = 64 / sizeof(float);

int64_t padded(int64_t count) {
  return (count + kLineFloats - 1) / kLineFloats * kLineFloats;
}

}  // namespace

FlatParameters::FlatParameters(const std::vector<torch::Tensor>& parameters, GradientSink& sink,
                               const FlatMemory& memory)
    : sink_(sink) {
  int64_t total = 0;
  for (const torch::Tensor& parameter : parameters) {
    if (parameter.scalar_type() != torch::kFloat32)
      throw Error(ErrorCode::usage,
                  fmt::format("a parameter is {}, and only float32 can be trained",
                              torch::toString(parameter.scalar_type())));
    slots_.push_back({parameter, total, parameter.numel()});
    total += padded(parameter.numel());
  }
  const auto allocate = [total](const Allocate& where) {
    return where ? torch::from_blob(where(static_cast<size_t>(total)), {total})
                 : torch::zeros({total});
  };
  values_ = allocate(memory.values);
  gradients_ = allocate(memory.gradients);

  for (Slot& slot : slots_) {
    const auto shape = slot.parameter.sizes();
    torch::Tensor place = values_.narrow(0, slot.offset, slot.count).view(shape);
    if (memory.fill_values) place.copy_(slot.parameter.detach());
    slot.parameter.set_data(place);
    // A gradient that is there already is added to in place, so it stays a view.
    slot.parameter.mutable_grad() = gradient_view(slot);
    sink_.add(slot.parameter, gradient_of(slot));
  }
}

FlatParameters::~FlatParameters() {
  for (const Slot& slot : slots_) sink_.remove(slot.parameter);
}

void FlatParameters::begin_step() {
  for (Slot& slot : slots_) {
    slot.zeroed = !sink_.written_before(slot.parameter);
    if (slot.zeroed) std::fill_n(gradient_of(slot), slot.count, 0.0f);
  }
}

torch::Tensor FlatParameters::gradient_view(const Slot& slot) const {
  return gradients_.narrow(0, slot.offset, slot.count).view(slot.parameter.sizes());
}

void FlatParameters::renew_gradients() {
  for (const Slot& slot : slots_) slot.parameter.mutable_grad() = gradient_view(slot);
}

void FlatParameters::attach_gradients() {
  const torch::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    torch::Tensor& gradient = slot.parameter.mutable_grad();
    const bool there = gradient.defined();
    if (there && gradient.data_ptr() != gradient_of(slot)) gradient_view(slot).copy_(gradient);
    if (!there) std::fill_n(gradient_of(slot), slot.count, 0.0f);
    if (!there || gradient.data_ptr() != gradient_of(slot)) gradient = gradient_view(slot);
    slot.zeroed = true;  // or kept: either way nothing is left of an earlier step
    if (there) sink_.keep(slot.parameter);
  }
}

void FlatParameters::settle(const Slot& slot) {
  if (!slot.zeroed && !sink_.written(slot.parameter))
    std::fill_n(gradient_of(slot), slot.count, 0.0f);
}

}  // namespace renkei::run
