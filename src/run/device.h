// The one place that decides which Torch device a rank uses and with how many threads.
#pragma once

#include <torch/torch.h>

namespace renkei::run {

torch::Device choose_device();

// Sets the threads of Torch, and of our kernels, which use the same OpenMP.
void set_threads(int threads);

}  // namespace renkei::run
