#include "run/kernels/registry.h"

namespace renkei::run::kernels {

TORCH_LIBRARY(renkei, library) {
  register_batch_norm(library);
  register_convolution(library);
  register_layout(library);
  register_linear(library);
  register_pooling(library);
  register_rows(library);
  register_tensor_parallel(library);
}

void load() {}

}  // namespace renkei::run::kernels
