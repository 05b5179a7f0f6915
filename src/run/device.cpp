#include "run/device.h"

#include <dlfcn.h>

namespace renkei::run {

torch::Device choose_device() {
  return torch::kCPU;
}

void set_threads(int threads) {
  at::set_num_threads(threads);
  // OpenBLAS with its own threads ignores OpenMP's setting; other BLAS libraries lack the function.
  if (void* function = ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
    reinterpret_cast<void (*)(int)>(function)(threads);
}

}  // namespace renkei::run
