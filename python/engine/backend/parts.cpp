#include "backend/parts.h"

#include "base/error.h"
#include "tensors.h"

namespace renkei::python {
namespace {

using c10d::ReduceOp;

comm::Reduction reduction_of(const ReduceOp& op) {
  switch (op.op_) {
    case ReduceOp::SUM:
    case ReduceOp::PREMUL_SUM:
      return comm::Reduction::sum;
    case ReduceOp::AVG:
      return comm::Reduction::mean;
    case ReduceOp::PRODUCT:
      return comm::Reduction::product;
    case ReduceOp::MIN:
      return comm::Reduction::min;
    case ReduceOp::MAX:
      return comm::Reduction::max;
    case ReduceOp::BAND:
      return comm::Reduction::bit_and;
    case ReduceOp::BOR:
      return comm::Reduction::bit_or;
    case ReduceOp::BXOR:
      return comm::Reduction::bit_xor;
    default:
      throw Error(ErrorCode::usage, fmt::format("there is no reduction with the number {}",
                                                static_cast<int>(op.op_)));
  }
}

at::Tensor multiplied(const at::Tensor& tensor, const ReduceOp& op) {
  const auto* factor = static_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  if (factor->tensor_factor.defined())
    return tensor.mul(factor->tensor_factor.to(tensor.scalar_type()));
  return tensor.mul(factor->double_factor);
}

}  // namespace

at::Tensor as_real(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

Contiguous::Contiguous(const at::Tensor& given, bool reads)
    : given_(given),
      memory_(given.is_contiguous() && !given.is_conj() && !given.is_neg() ? given
              : reads
                  ? given.detach().clone(at::MemoryFormat::Contiguous).resolve_conj().resolve_neg()
                  : at::empty(given.sizes(), given.options())) {}

std::span<std::byte> Contiguous::bytes() const {
  return bytes_of(memory_);
}

std::vector<at::Tensor> Contiguous::parts(int n) const {
  return memory_.view({-1}).chunk(n);
}

void Contiguous::finish() const {
  if (!memory_.is_same(given_)) given_.copy_(memory_);
}

ContiguousList::ContiguousList(const std::vector<at::Tensor>& given, bool reads) {
  for (const at::Tensor& tensor : given) list_.emplace_back(tensor, reads);
}

void ContiguousList::finish() const {
  for (const Contiguous& tensor : list_) tensor.finish();
}

Reduced::Reduced(const at::Tensor& given, const ReduceOp& op)
    : given_(as_real(given)), memory_(given_), reduction_(reduction_of(op)) {
  if (op.op_ == ReduceOp::PREMUL_SUM)
    memory_ = multiplied(given_, op).contiguous();
  else if (!given_.is_contiguous())
    memory_ = given_.clone(at::MemoryFormat::Contiguous);
}

void Reduced::finish() const {
  if (!memory_.is_same(given_)) given_.copy_(memory_);
}

ReducedList::ReducedList(const std::vector<at::Tensor>& given, const ReduceOp& op) {
  for (const at::Tensor& tensor : given) list_.emplace_back(tensor, op);
}

std::vector<const std::byte*> ReducedList::places() const {
  std::vector<const std::byte*> places;
  for (const Reduced& reduced : list_)
    places.push_back(static_cast<const std::byte*>(reduced.memory().data_ptr()));
  return places;
}

comm::Parts empty_parts(int ranks) {
  comm::Parts parts;
  parts.to.resize(static_cast<size_t>(ranks));
  parts.from.resize(static_cast<size_t>(ranks));
  return parts;
}

std::vector<std::span<std::byte>> split_rows(const Contiguous& tensor,
                                             const std::vector<int64_t>& sizes, int ranks) {
  const auto whole = tensor.bytes();
  const auto rows = static_cast<size_t>(tensor.tensor().size(0));
  const size_t row = rows == 0 ? 0 : whole.size() / rows;
  std::vector<std::span<std::byte>> parts;
  size_t at = 0;
  for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank) {
    const size_t bytes = row * (sizes.empty() ? rows / static_cast<size_t>(ranks)
                                              : static_cast<size_t>(sizes[rank]));
    parts.push_back(whole.subspan(at, bytes));
    at += bytes;
  }
  return parts;
}

void check_reduction(const at::Tensor& tensor, const ReduceOp& op) {
  if (tensor.is_complex() && !c10d::isComplexViewAsRealAllowed(op))
    throw Error(ErrorCode::usage,
                fmt::format("there is no {} of complex numbers", name_of(reduction_of(op))));
  const at::Tensor real = as_real(tensor);
  const comm::DType dtype = buffer_of(real).dtype;
  // Renkei's own counters are rounded on purpose; nobody asked for it here.
  if (dtype == comm::DType::i64 && reduction_of(op) == comm::Reduction::mean)
    throw Error(ErrorCode::usage, "a mean of i64 would be rounded",
                "sum them, and divide as you mean it");
  comm::check_reduction(dtype, reduction_of(op));
}

void check_list(const std::vector<at::Tensor>& list, int ranks, const at::Tensor& one,
                const char* name) {
  if (list.size() != static_cast<size_t>(ranks))
    throw Error(ErrorCode::usage, fmt::format("{} among {} ranks has a list of {} tensors", name,
                                              ranks, list.size()));
  for (const at::Tensor& tensor : list) {
    if (tensor.scalar_type() != one.scalar_type())
      throw Error(ErrorCode::usage,
                  fmt::format("{} of tensors of {} and {}: they must have the same type", name,
                              at::toString(one.scalar_type()), at::toString(tensor.scalar_type())));
    if (tensor.numel() != one.numel())
      throw Error(ErrorCode::usage,
                  fmt::format("{} of tensors with {} and {} elements: all must have the same size",
                              name, one.numel(), tensor.numel()));
  }
}

void check_whole(const at::Tensor& whole, const at::Tensor& one, int ranks, const char* name) {
  if (whole.scalar_type() != one.scalar_type())
    throw Error(ErrorCode::usage,
                fmt::format("{} of tensors of {} and {}: they must have the same type", name,
                            at::toString(whole.scalar_type()), at::toString(one.scalar_type())));
  if (whole.numel() != one.numel() * ranks)
    throw Error(ErrorCode::usage,
                fmt::format("{} among {} ranks of tensors with {} and {} elements: one must be {} "
                            "times the other",
                            name, ranks, whole.numel(), one.numel(), ranks));
}

}  // namespace renkei::python
