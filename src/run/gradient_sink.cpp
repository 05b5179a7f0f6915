#include "run/gradient_sink.h"

#include <algorithm>
#include <utility>

namespace renkei::run {

std::optional<GradientSink::Target> GradientSink::claim(const torch::Tensor& parameter) {
  if (!direct) return {};
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  if (found == places_.end()) return {};
  Place& place = found->second;
  const bool first = place.last_step != step_;
  place.last_step = step_;
  return Target{place.gradient, first ? compute::Write::replace : compute::Write::add};
}

bool GradientSink::knows(const torch::Tensor& parameter) const {
  return direct && places_.contains(parameter.unsafeGetTensorImpl());
}

void GradientSink::add(const torch::Tensor& parameter, float* gradient) {
  places_[parameter.unsafeGetTensorImpl()] = {gradient};
}

void GradientSink::remove(const torch::Tensor& parameter) {
  places_.erase(parameter.unsafeGetTensorImpl());
}

void GradientSink::keep(const torch::Tensor& parameter) {
  if (const auto found = places_.find(parameter.unsafeGetTensorImpl()); found != places_.end())
    found->second.last_step = step_;
}

bool GradientSink::wrote_in(const torch::Tensor& parameter, int64_t step) const {
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  return found != places_.end() && found->second.last_step == step;
}

void DeferredGradients::run(const Complete& complete) {
  const torch::NoGradGuard no_grad;
  for (Work& work : work_) {
    work.compute();
    work.compute = {};  // with what it kept
    const torch::Tensor parameter = std::exchange(work.parameter, {});
    if (complete && !has(parameter)) complete(parameter);
  }
  work_.clear();
}

bool DeferredGradients::has(const torch::Tensor& parameter) const {
  return std::ranges::any_of(work_,
                             [&](const Work& work) { return work.parameter.is_same(parameter); });
}

}  // namespace renkei::run
