// Tensors of c10d's calls as what the collectives take: contiguous memory, lists of parts.
#pragma once

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <span>
#include <vector>

#include "comm/group_collectives.h"

namespace renkei::python {

// A tensor whose memory is contiguous: itself, or a copy that finish() writes back.
class Contiguous {
 public:
  Contiguous(const at::Tensor& given, bool reads);
  const at::Tensor& tensor() const { return memory_; }
  std::span<std::byte> bytes() const;
  // Its n equal parts, in the order of memory.
  std::vector<at::Tensor> parts(int n) const;
  void finish() const;

 private:
  at::Tensor given_, memory_;
};

class ContiguousList {
 public:
  ContiguousList(const std::vector<at::Tensor>& given, bool reads);
  std::span<std::byte> bytes(size_t index) const { return list_[index].bytes(); }
  void finish() const;

 private:
  std::vector<Contiguous> list_;
};

// A tensor to be reduced: complex numbers as pairs, PREMUL_SUM as a sum of multiples.
class Reduced {
 public:
  Reduced(const at::Tensor& given, const c10d::ReduceOp& op);
  const at::Tensor& memory() const { return memory_; }
  comm::Reduction reduction() const { return reduction_; }
  void finish() const;  // the result is in memory()

 private:
  at::Tensor given_, memory_;
  comm::Reduction reduction_;
};

class ReducedList {
 public:
  ReducedList(const std::vector<at::Tensor>& given, const c10d::ReduceOp& op);
  std::vector<const std::byte*> places() const;
  comm::Reduction reduction() const { return list_.front().reduction(); }

 private:
  std::vector<Reduced> list_;
};

at::Tensor as_real(const at::Tensor& tensor);
comm::Parts empty_parts(int ranks);
// The memory of a tensor cut along its first dimension; empty sizes: into equal parts.
std::vector<std::span<std::byte>> split_rows(const Contiguous& tensor,
                                             const std::vector<int64_t>& sizes, int ranks);

// Usage Errors, before anything is exchanged.
void check_reduction(const at::Tensor& tensor, const c10d::ReduceOp& op);
// A list has one tensor for each rank, each as large as `one` and of its type.
void check_list(const std::vector<at::Tensor>& list, int ranks, const at::Tensor& one,
                const char* name);
// A tensor is as large as `one` for each rank.
void check_whole(const at::Tensor& whole, const at::Tensor& one, int ranks, const char* name);

}  // namespace renkei::python
