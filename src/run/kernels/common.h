// What the bindings of kernels to autograd share. A binding is an operation renkei::… of Torch's
// dispatcher, around a torch::autograd::Function, around the kernels of compute/; the rewrites
// (rewrite/) put it in the place of Torch's own operations. Its last argument is the address of the
// rank's ExecutionContext.
//
// Blocked images are tensors of batch × channels/block × height × width × block.
#pragma once

#include <torch/library.h>
#include <torch/torch.h>

#include "compute/blocked.h"
#include "compute/rows.h"
#include "run/execution_context.h"

namespace renkei::run::kernels {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

inline const float* data(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}
inline float* place(Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}

inline compute::RowShape rows_of(const Tensor& tensor) {
  const int64_t columns = tensor.size(-1);
  return {.rows = columns > 0 ? tensor.numel() / columns : 0, .columns = columns};
}

// The result for an input without values (Torch's meta device) is one too.
inline Tensor blank_result(const Tensor& input, at::IntArrayRef shape) {
  return torch::empty(shape, input.options().requires_grad(torch::GradMode::is_enabled()));
}

// Where the gradient of a parameter goes; `gradient` is what autograd must be given for it. No
// place where the parameter is undefined.
struct Place {
  float* data = nullptr;
  compute::Write write = compute::Write::replace;
  Tensor gradient = {};
};
inline Place place_for(ExecutionContext* context, const Tensor& parameter) {
  if (!parameter.defined()) return {};
  if (context)
    if (const auto target = context->sink.claim(parameter)) return {target->data, target->write};
  Tensor gradient = torch::empty(parameter.sizes());
  return {place(gradient), compute::Write::replace, gradient};
}

// Calls compute(pointer, write) so that the gradient of `parameter` ends where it belongs, and
// returns what autograd must be given for it.
template <typename Compute>
Tensor give_gradient(ExecutionContext* context, const Tensor& parameter, Compute compute) {
  const Place to = place_for(context, parameter);
  compute(to.data, to.write);
  return to.gradient;
}

// The same for work that may be put off: `compute` must own what it needs.
template <typename Compute>
Tensor give_gradient_later(ExecutionContext* context, const Tensor& parameter, Compute compute) {
  if (!context || !context->deferred || !context->sink.knows(parameter))
    return give_gradient(context, parameter, std::move(compute));
  context->deferred->add(parameter, [context, parameter, compute = std::move(compute)] {
    give_gradient(context, parameter, compute);
  });
  return {};
}

}  // namespace renkei::run::kernels
