#include "run/flat_parameters.h"

#include "base/checksum.h"
#include "base/error.h"

namespace renkei::run {
namespace {

constexpr int64_t kLineFloats = 64 / sizeof(float);

int64_t padded(int64_t count) {
  return (count + kLineFloats - 1) / kLineFloats * kLineFloats;
}

}  // namespace

FlatParameters::FlatParameters(torch::nn::Module& module) : parameters_(module.parameters()) {
  int64_t total = 0;
  for (const auto& named : module.named_parameters()) {
    if (named.value().scalar_type() != torch::kFloat32)
      throw Error(ErrorCode::usage,
                  fmt::format("the parameter {} is {}, and only float32 can be trained",
                              named.key(), torch::toString(named.value().scalar_type())));
    total += padded(named.value().numel());
  }
  values_ = torch::zeros({total});
  gradients_ = torch::zeros({total});

  int64_t offset = 0;
  for (torch::Tensor& parameter : parameters_) {
    const int64_t count = parameter.numel();
    torch::Tensor place = values_.narrow(0, offset, count).view(parameter.sizes());
    place.copy_(parameter.detach());
    parameter.set_data(place);
    // A gradient that is there already is added to in place, so it stays a view.
    parameter.mutable_grad() = gradients_.narrow(0, offset, count).view(parameter.sizes());
    offset += padded(count);
  }
}

std::string FlatParameters::checksum() const {
  Checksum checksum;
  for (const torch::Tensor& parameter : parameters_)
    checksum.add(std::as_bytes(
        std::span(parameter.data_ptr<float>(), static_cast<size_t>(parameter.numel()))));
  return checksum.hex();
}

}  // namespace renkei::run
