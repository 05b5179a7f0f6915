// The operations renkei::… that this process has.
#pragma once

#include <torch/library.h>

namespace renkei::run::kernels {

void register_batch_norm(torch::Library& library);
void register_convolution(torch::Library& library);
void register_layout(torch::Library& library);
void register_linear(torch::Library& library);
void register_pooling(torch::Library& library);
void register_rows(torch::Library& library);
void register_tensor_parallel(torch::Library& library);

// Makes sure that they are there: whoever calls this is linked with them.
void load();

}  // namespace renkei::run::kernels
