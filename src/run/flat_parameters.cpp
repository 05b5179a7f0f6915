#include "run/flat_parameters.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"

namespace renkei::run {
namespace {

// To a whole number of cache lines.
int64_t padded(int64_t count, torch::ScalarType type) {
  const auto line = static_cast<int64_t>(64 / torch::elementSize(type));
  return (count + line - 1) / line * line;
}

// The type of all of them.
torch::ScalarType type_of(const std::vector<torch::Tensor>& parameters) {
  const torch::ScalarType type =
      parameters.empty() ? torch::kFloat32 : parameters.front().scalar_type();
  for (const torch::Tensor& parameter : parameters) {
    const torch::ScalarType other = parameter.scalar_type();
    if (other != torch::kFloat32 && other != torch::kFloat64)
      throw Error(ErrorCode::usage,
                  fmt::format("a parameter is {}, and only float32 and float64 can be trained",
                              torch::toString(other)));
    if (other != type)
      throw Error(ErrorCode::usage,
                  "some parameters are float32 and some float64, and only one type can be trained",
                  "convert the model in Python: model.float() or model.double()");
  }
  return type;
}

}  // namespace

FlatParameters::FlatParameters(const std::vector<torch::Tensor>& parameters, GradientSink& sink,
                               const FlatMemory& memory)
    : sink_(sink) {
  const torch::ScalarType type = type_of(parameters);
  int64_t total = 0;
  for (const torch::Tensor& parameter : parameters) {
    slots_.push_back({parameter, total, parameter.numel()});
    total += padded(parameter.numel(), type);
  }
  const auto allocate = [&](const Allocate& where) {
    const comm::DType dtype = type == torch::kFloat64 ? comm::DType::f64 : comm::DType::f32;
    return where ? torch::from_blob(where(static_cast<size_t>(total), dtype), {total}, type)
                 : torch::zeros({total}, type);
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
    if (type == torch::kFloat32)  // kernels of ours write no other
      sink_.add(slot.parameter, gradients_.data_ptr<float>() + slot.offset);
  }
}

FlatParameters::~FlatParameters() {
  for (const Slot& slot : slots_) sink_.remove(slot.parameter);
}

void FlatParameters::begin_step() {
  for (Slot& slot : slots_) {
    slot.zeroed = !sink_.written_before(slot.parameter);
    if (slot.zeroed) clear(slot);
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
    const torch::Tensor place = gradient_view(slot);
    const bool in_place = there && gradient.data_ptr() == place.data_ptr();
    if (there && !in_place) place.copy_(gradient);
    if (!there) clear(slot);
    if (!in_place) gradient = place;
    slot.zeroed = true;  // or kept: either way nothing is left of an earlier step
    if (there) sink_.keep(slot.parameter);
  }
}

void FlatParameters::settle(const Slot& slot) {
  if (!slot.zeroed && !sink_.written(slot.parameter)) clear(slot);
}

void FlatParameters::clear(const Slot& slot) {
  const auto size = static_cast<int64_t>(gradients_.element_size());
  std::memset(static_cast<std::byte*>(gradients_.data_ptr()) + slot.offset * size, 0,
              static_cast<size_t>(slot.count * size));
}

comm::Buffer FlatParameters::as_buffer(const torch::Tensor& flat) {
  return {static_cast<std::byte*>(flat.data_ptr()), static_cast<size_t>(flat.numel()),
          flat.scalar_type() == torch::kFloat64 ? comm::DType::f64 : comm::DType::f32};
}

}  // namespace renkei::run
