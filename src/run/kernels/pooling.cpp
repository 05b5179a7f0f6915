#include "compute/pooling.h"

#include "run/kernels/images.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

compute::PoolingShape pooling_shape(const Tensor& input, int64_t kernel, int64_t stride,
                                    int64_t padding, bool max) {
  const auto shape = shape_of(input);
  return {.batch = shape.batch,
          .channels = shape.channels,
          .height = shape.height,
          .width = shape.width,
          .kernel = kernel,
          .stride = stride,
          .padding = padding,
          .max = max};
}

struct Pooling : torch::autograd::Function<Pooling> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, int64_t kernel,
                        int64_t stride, int64_t padding, bool max) {
    const Tensor input = given.contiguous();
    const auto shape = pooling_shape(input, kernel, stride, padding, max);
    Tensor output = empty_image(shape.output());
    Tensor workspace = torch::empty({static_cast<int64_t>(compute::pooling_workspace_bytes(shape))},
                                    torch::kUInt8);
    compute::pooling_forward(shape, data(input), place(output),
                             static_cast<std::byte*>(workspace.data_ptr()));
    saved_for->save_for_backward({workspace});
    saved_for->saved_data["pool"] = std::vector<int64_t>{kernel, stride, padding, max};
    saved_for->saved_data["input"] = input.sizes().vec();
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const auto pool = saved_for->saved_data["pool"].toIntVector();
    Tensor input_gradient = torch::empty(saved_for->saved_data["input"].toIntVector());
    const auto shape = pooling_shape(input_gradient, pool[0], pool[1], pool[2], pool[3] != 0);
    compute::pooling_backward(shape, data(gradients[0].contiguous()),
                              static_cast<const std::byte*>(saved[0].data_ptr()),
                              place(input_gradient));
    return {input_gradient, {}, {}, {}, {}};
  }
};

Tensor pool_kernel(const Tensor& input, int64_t kernel, int64_t stride, int64_t padding, bool max,
                   int64_t) {
  if (input.is_meta())
    return blank_result(input,
                        blocked_sizes(pooling_shape(input, kernel, stride, padding, max).output()));
  return Pooling::apply(input, kernel, stride, padding, max);
}

}  // namespace

void register_pooling(torch::Library& library) {
  library.def(
      "pool(Tensor input, int kernel, int stride, int padding, bool max, int context=0) -> Tensor",
      &pool_kernel);
}

}  // namespace renkei::run::kernels
