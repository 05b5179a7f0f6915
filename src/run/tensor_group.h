// The ranks that compute the parts of one program together (shard/shard.h), and the exchanges
// between them, of whole tensors and of their parts.
#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>

#include "comm/communicator.h"

namespace renkei::run {

struct TensorGroup {
  // Null: a rank by itself takes what it has for what the others have, as where operations are
  // measured one by one.
  comm::Communicator* communicator = nullptr;
  int index = 0;        // of this rank in the group
  int64_t samples = 0;  // of the micro-batch under way, of all ranks together
  int64_t step = 0;     // for messages
  double timeout_seconds = 300;
};

// How a dimension is divided: into blocks of equal length, of which each rank has a part; or, where
// it grows with the batch, by samples, `unit` elements each.
struct TensorCut {
  int64_t dim = 0, blocks = 1, parts = 1, unit = 0;
  int64_t samples = 0;  // of the micro-batch, where unit > 0

  static constexpr size_t kNumbers = 5;
  std::array<int64_t, kNumbers> numbers() const { return {dim, blocks, parts, unit, samples}; }
  static TensorCut from(const std::vector<int64_t>& numbers) {
    return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  }

  // Elements of the dimension that a rank has of a block, and those before it.
  int64_t length(int64_t whole, int64_t index) const {
    return unit > 0 ? unit * ((samples + parts - 1 - index) / parts) : whole / blocks / parts;
  }
  int64_t begin(int64_t whole, int64_t index) const;
  int64_t whole_of(int64_t part) const { return unit > 0 ? unit * samples : part * parts; }
};

torch::Tensor summed(const TensorGroup& group, const torch::Tensor& share, std::string_view what,
                     comm::Reduction reduction = comm::Reduction::sum);
torch::Tensor part_of(const torch::Tensor& whole, const TensorCut& cut, int64_t index);
torch::Tensor gathered(const TensorGroup& group, const torch::Tensor& part, const TensorCut& cut);
// The sum of all ranks' tensors, of which this one gets its part.
torch::Tensor scattered(const TensorGroup& group, const torch::Tensor& share, const TensorCut& cut);
// Zeros, but for this rank's part.
torch::Tensor padded(const torch::Tensor& part, const TensorCut& cut, int64_t index);

}  // namespace renkei::run
