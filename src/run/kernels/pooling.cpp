#include "compute/pooling.h"

#include "run/kernels/images.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

// Beside the image: kernel, stride, padding, max, ceil, whether padding counts.
using Geometry = std::vector<int64_t>;

compute::PoolingShape pooling_shape(at::IntArrayRef image, const Geometry& geometry) {
  return {.batch = image[0],
          .channels = image[1] * image[4],
          .height = image[2],
          .width = image[3],
          .kernel = geometry[0],
          .stride = geometry[1],
          .padding = geometry[2],
          .max = geometry[3] != 0,
          .ceil = geometry[4] != 0,
          .count_padding = geometry[5] != 0,
          .block = image[4]};
}

struct Pooling : torch::autograd::Function<Pooling> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Geometry& geometry) {
    const Tensor input = given.contiguous();
    const auto shape = pooling_shape(input.sizes(), geometry);
    Tensor output = empty_image(shape.output());
    Tensor workspace = torch::empty({static_cast<int64_t>(compute::pooling_workspace_bytes(shape))},
                                    torch::kUInt8);
    compute::pooling_forward(shape, data(input), place(output),
                             static_cast<std::byte*>(workspace.data_ptr()));
    saved_for->save_for_backward({workspace});
    saved_for->saved_data["geometry"] = geometry;
    saved_for->saved_data["input"] = input.sizes().vec();
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    Tensor input_gradient = torch::empty(saved_for->saved_data["input"].toIntVector());
    const auto shape =
        pooling_shape(input_gradient.sizes(), saved_for->saved_data["geometry"].toIntVector());
    compute::pooling_backward(shape, data(gradients[0].contiguous()),
                              static_cast<const std::byte*>(saved[0].data_ptr()),
                              place(input_gradient));
    return {input_gradient, {}};
  }
};

Tensor pool_general(const Tensor& input, int64_t kernel, int64_t stride, int64_t padding, bool max,
                    bool ceil, bool count_padding, int64_t) {
  const Geometry geometry{kernel, stride, padding, max, ceil, count_padding};
  if (input.is_meta())
    return blank_result(input, blocked_sizes(pooling_shape(input.sizes(), geometry).output()));
  return Pooling::apply(input, geometry);
}

Tensor pool(const Tensor& input, int64_t kernel, int64_t stride, int64_t padding, bool max,
            int64_t context) {
  return pool_general(input, kernel, stride, padding, max, false, true, context);
}

}  // namespace

void register_pooling(torch::Library& library) {
  library.def(
      "pool(Tensor input, int kernel, int stride, int padding, bool max, int context=0) -> Tensor",
      &pool);
  library.def(
      "pool.general(Tensor input, int kernel, int stride, int padding, bool max, bool ceil, "
      "bool count_padding, int context=0) -> Tensor",
      &pool_general);
}

}  // namespace renkei::run::kernels
