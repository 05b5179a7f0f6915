#include "run/device.h"

namespace renkei::run {

torch::Device choose_device() {
  return torch::kCPU;
}

void set_threads(int threads) {
  at::set_num_threads(threads);
}

}  // namespace renkei::run
