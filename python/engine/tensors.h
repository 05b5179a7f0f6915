// Tensors as what the collectives know.
#pragma once

#include <torch/torch.h>

#include <span>

#include "comm/buffer/dtype.h"

namespace renkei::python {

// A contiguous tensor on the CPU, for arithmetic. A usage Error for types that have none there.
comm::Buffer buffer_of(const at::Tensor& tensor);
// The same to be moved only, whatever its type.
std::span<std::byte> bytes_of(const at::Tensor& tensor);

}  // namespace renkei::python
