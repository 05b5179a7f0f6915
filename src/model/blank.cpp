#include "model/blank.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/units.h"

namespace renkei::model {
namespace {

using torch::Tensor;
using Arguments = c10::ArrayRef<torch::IValue>;

bool is_blank(const Tensor& tensor) {
  return tensor.defined() && tensor.is_meta();
}

bool is_tensor_list(const torch::IValue& value) {
  return value.isTensorList() || value.isOptionalTensorList();
}

bool any_tensor(Arguments arguments, bool (*is_wanted)(const Tensor&)) {
  return std::ranges::any_of(arguments, [&](const torch::IValue& value) {
    if (value.isTensor()) return is_wanted(value.toTensor());
    return is_tensor_list(value) &&
           std::ranges::any_of(value.toListRef(), [&](const torch::IValue& part) {
             return part.isTensor() && is_wanted(part.toTensor());
           });
  });
}

using Change = std::function<Tensor(const Tensor&)>;

torch::IValue changed(const torch::IValue& value, const Change& change) {
  if (value.isTensor() && value.toTensor().defined()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const torch::IValue& part : value.toListRef()) list.push_back(change(part.toTensor()));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<c10::optional<Tensor>> list;
    for (const torch::IValue& part : value.toListRef())
      list.push_back(part.isTensor() ? c10::make_optional(change(part.toTensor())) : c10::nullopt);
    return list;
  }
  return value;
}

void change_tensors(torch::jit::Stack& stack, size_t begin, const Change& change) {
  for (size_t i = begin; i < stack.size(); ++i) stack[i] = changed(stack[i], change);
}

Tensor without_values(const Tensor& tensor) {
  if (!tensor.is_cpu()) return tensor;
  Tensor blank = at::empty_strided(tensor.sizes(), tensor.strides(),
                                   tensor.options().device(torch::kMeta).requires_grad(false));
  // A number in an expression does not decide the type of the result.
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    blank.unsafeGetTensorImpl()->set_wrapped_number(true);
  return blank;
}

// Of memory that the system makes when it is written to.
Tensor with_zeros(const Tensor& tensor) {
  if (!is_blank(tensor)) return tensor;
  const auto options = tensor.options().device(torch::kCPU).requires_grad(false);
  const size_t bytes =
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size());
  if (bytes == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::memory,
                fmt::format("an operation of the network on {} of zeros does not fit in memory",
                            format_size(static_cast<int64_t>(bytes))));
  return at::from_blob(
      memory, tensor.sizes(), tensor.strides(), [bytes](void* at) { munmap(at, bytes); }, options);
}

// Where an operation takes one.
torch::IValue* device_argument(const c10::OperatorHandle& op, torch::jit::Stack& stack,
                               size_t begin) {
  const auto index = op.schema().argumentIndexWithName("device");
  return index ? &stack[begin + static_cast<size_t>(*index)] : nullptr;
}

c10::DispatchKeySet keys_below(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake);
}

// Which arguments an operation writes to, and returns.
std::vector<Tensor> written(const c10::FunctionSchema& schema, Arguments arguments) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias && alias->isWrite() && arguments[i].isTensor())
      tensors.push_back(arguments[i].toTensor());
  }
  return tensors;
}

// Computes on zeros, and keeps the shapes of the results.
void compute_shapes(const c10::OperatorHandle& op, torch::jit::Stack& stack, size_t begin) {
  const std::vector<Tensor> places = written(op.schema(), Arguments(stack).slice(begin));
  const OrdinaryTensors computing;
  change_tensors(stack, begin, with_zeros);
  if (auto* device = device_argument(op, stack, begin)) *device = c10::Device(torch::kCPU);
  op.callBoxed(&stack);
  size_t place = 0;
  for (size_t i = 0; i < op.schema().returns().size(); ++i) {
    torch::IValue& result = stack[begin + i];
    const auto* alias = op.schema().returns()[i].alias_info();
    if (alias && alias->isWrite() && place < places.size())
      result = places[place++];
    else
      result = changed(result, without_values);
  }
}

// What every operation goes through while there are BlankTensors.
void run_blank(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const size_t begin = stack->size() - op.schema().arguments().size();
  const Arguments arguments = Arguments(*stack).slice(begin);
  const auto is_defined = [](const Tensor& tensor) { return tensor.defined(); };
  auto* device = device_argument(op, *stack, begin);
  if (!any_tensor(arguments, is_blank)) {
    if (device && device->isNone() && !any_tensor(arguments, is_defined))
      *device = c10::Device(torch::kMeta);
    op.redispatchBoxed(keys_below(keys), stack);
    return;
  }
  torch::jit::Stack given(stack->begin() + static_cast<ptrdiff_t>(begin), stack->end());
  change_tensors(*stack, begin, without_values);
  if (device) *device = c10::Device(torch::kMeta);
  try {
    op.redispatchBoxed(keys_below(keys).remove_backend(c10::BackendComponent::CPUBit) |
                           c10::DispatchKeySet(c10::DispatchKey::Meta),
                       stack);
  } catch (const c10::Error&) {
    stack->resize(begin);
    stack->insert(stack->end(), given.begin(), given.end());
    compute_shapes(op, *stack, begin);
  }
}

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_blank>());
}

// Shapes that Torch does not know, of operations that take long to compute.
Tensor convolution_shape_only(const Tensor& input, const Tensor& weight,
                              const c10::optional<Tensor>&, at::IntArrayRef stride,
                              at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                              at::IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(input.dim() == weight.dim() &&
              input.size(1) == (transposed ? weight.size(0) : weight.size(1) * groups));
  std::vector<int64_t> shape{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  for (int64_t d = 2; d < input.dim(); ++d) {
    const auto at = [&](at::IntArrayRef all) {
      return all[all.size() == 1 ? 0 : static_cast<size_t>(d - 2)];
    };
    const int64_t reach = at(dilation) * (weight.size(d) - 1);
    shape.push_back(transposed ? (input.size(d) - 1) * at(stride) - 2 * at(padding) + reach + 1 +
                                     at(output_padding)
                               : (input.size(d) + 2 * at(padding) - reach - 1) / at(stride) + 1);
  }
  return at::empty(shape, input.options());
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_shape_only(const Tensor& input,
                                                         at::IntArrayRef normalised,
                                                         const c10::optional<Tensor>&,
                                                         const c10::optional<Tensor>&, double) {
  std::vector<int64_t> statistics = input.sizes().vec();
  TORCH_CHECK(normalised.size() <= statistics.size());
  std::fill(statistics.end() - static_cast<ptrdiff_t>(normalised.size()), statistics.end(), 1);
  return {at::empty_like(input), at::empty(statistics, input.options()),
          at::empty(statistics, input.options())};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_shape_only(
    const Tensor& input, const c10::optional<Tensor>&, const c10::optional<Tensor>&,
    const c10::optional<Tensor>&, const c10::optional<Tensor>&, bool training, double, double) {
  const int64_t channels = training ? input.size(1) : 0;
  return {at::empty_like(input), at::empty({channels}, input.options()),
          at::empty({channels}, input.options())};
}

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("convolution", &convolution_shape_only);
  library.impl("native_layer_norm", &layer_norm_shape_only);
  library.impl("native_batch_norm", &batch_norm_shape_only);
}

}  // namespace
}  // namespace renkei::model
