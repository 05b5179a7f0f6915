// Between plain and blocked images, at the borders of what our kernels compute.
#include "run/kernels/common.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

Tensor to_blocked(const Tensor& plain, int64_t block, int64_t) {
  return plain.reshape({plain.size(0), plain.size(1) / block, block, plain.size(2), plain.size(3)})
      .permute({0, 1, 3, 4, 2})
      .contiguous();
}

Tensor to_plain(const Tensor& image, int64_t) {
  return image.permute({0, 1, 4, 2, 3})
      .reshape({image.size(0), image.size(1) * image.size(4), image.size(2), image.size(3)});
}

}  // namespace

void register_layout(torch::Library& library) {
  library.def("to_blocked(Tensor input, int block, int context=0) -> Tensor", &to_blocked);
  library.def("to_plain(Tensor input, int context=0) -> Tensor", &to_plain);
}

}  // namespace renkei::run::kernels
