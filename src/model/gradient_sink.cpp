#include "model/gradient_sink.h"

#include "model/compute_options.h"

namespace renkei::model {

GradientSink& GradientSink::of_this_thread() {
  static thread_local GradientSink sink;
  return sink;
}

std::optional<GradientSink::Target> GradientSink::claim(const torch::Tensor& parameter) {
  if (!compute_options().direct_gradients) return {};
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  if (found == places_.end()) return {};
  Place& place = found->second;
  const bool first = place.last_step != step_;
  place.last_step = step_;
  return Target{place.gradient, first ? compute::Write::replace : compute::Write::add};
}

void GradientSink::add(const torch::Tensor& parameter, float* gradient) {
  places_[parameter.unsafeGetTensorImpl()] = {gradient};
}

void GradientSink::remove(const torch::Tensor& parameter) {
  places_.erase(parameter.unsafeGetTensorImpl());
}

bool GradientSink::wrote_in(const torch::Tensor& parameter, int64_t step) const {
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  return found != places_.end() && found->second.last_step == step;
}

}  // namespace renkei::model
