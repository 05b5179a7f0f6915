// The tensors of a network on their way between ranks.
#pragma once

#include <torch/torch.h>

#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace renkei::run {

// Of a contiguous tensor, whatever its type.
std::span<std::byte> bytes_of(const torch::Tensor& tensor);

// The tensors become those of rank 0.
void broadcast_state(const std::vector<torch::Tensor>& state, comm::Communicator& communicator,
                     const comm::Call& call);

// Each float buffer becomes its mean over the ranks.
void average_buffers(const std::vector<torch::Tensor>& buffers, comm::Communicator& communicator,
                     const comm::Call& call);

// A hash of its bytes.
uint64_t checksum_of(const torch::Tensor& tensor);

}  // namespace renkei::run
