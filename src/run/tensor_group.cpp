#include "run/tensor_group.h"

#include "base/error.h"
#include "run/buffers.h"

namespace renkei::run {
namespace {

comm::DType dtype_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat32:
      return comm::DType::f32;
    case torch::kFloat64:
      return comm::DType::f64;
    case torch::kFloat16:
      return comm::DType::f16;
    case torch::kBFloat16:
      return comm::DType::bf16;
    case torch::kInt64:
      return comm::DType::i64;
    default:
      throw Error(
          ErrorCode::data,
          fmt::format("tensors of type {} can't be added up over the ranks of a tensor group",
                      c10::toString(tensor.scalar_type())),
          "train with --set plan.tensor=1");
  }
}

comm::Buffer buffer_of(const torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<size_t>(tensor.numel()),
          dtype_of(tensor)};
}

comm::Call call_of(const TensorGroup& group, std::string_view operation) {
  return {.operation = operation, .step = group.step, .timeout_seconds = group.timeout_seconds};
}

std::vector<int64_t> with_size(const torch::Tensor& tensor, int64_t dim, int64_t size) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  sizes[static_cast<size_t>(dim)] = size;
  return sizes;
}

// The place of a rank's part in the whole.
torch::Tensor place_in(const torch::Tensor& whole, const TensorCut& cut, int64_t index) {
  const int64_t dim = cut.dim, size = whole.size(dim);
  if (cut.blocks == 1) return whole.narrow(dim, cut.begin(size, index), cut.length(size, index));
  return whole.unflatten(dim, {cut.blocks, size / cut.blocks})
      .narrow(dim + 1, cut.begin(size, index), cut.length(size, index));
}

// A part with the blocks as a dimension of their own, as place_in() has it.
torch::Tensor in_blocks(const torch::Tensor& part, const TensorCut& cut) {
  if (cut.blocks == 1) return part;
  return part.unflatten(cut.dim, {cut.blocks, part.size(cut.dim) / cut.blocks});
}

}  // namespace

int64_t TensorCut::begin(int64_t whole, int64_t index) const {
  if (unit == 0) return index * length(whole, index);
  int64_t sum = 0;
  for (int64_t i = 0; i < index; ++i) sum += length(whole, i);
  return sum;
}

torch::Tensor summed(const TensorGroup& group, const torch::Tensor& share, std::string_view what,
                     comm::Reduction reduction) {
  torch::Tensor sum = share.clone(at::MemoryFormat::Contiguous);
  if (group.communicator && sum.numel() > 0)
    group.communicator->allreduce(buffer_of(sum), reduction, call_of(group, what));
  return sum;
}

torch::Tensor part_of(const torch::Tensor& whole, const TensorCut& cut, int64_t index) {
  const torch::Tensor part = place_in(whole, cut, index);
  if (cut.blocks == 1) return part.clone(at::MemoryFormat::Contiguous);
  return part.reshape(with_size(whole, cut.dim, part.size(cut.dim + 1) * cut.blocks))
      .clone(at::MemoryFormat::Contiguous);
}

torch::Tensor gathered(const TensorGroup& group, const torch::Tensor& part, const TensorCut& cut) {
  const int64_t size = cut.whole_of(part.size(cut.dim));
  // Parts of equal length travel; the first rank has the longest.
  const int64_t length = cut.length(size, 0) * cut.blocks;
  std::vector<int64_t> sizes = with_size(part, cut.dim, length);
  sizes.insert(sizes.begin(), cut.parts);
  const torch::Tensor all = torch::empty(sizes, part.options().requires_grad(false));
  if (group.communicator) {
    all[group.index].narrow(cut.dim, 0, part.size(cut.dim)).copy_(part);
    if (all.numel() > 0)
      group.communicator->all_gather(comm::Buffer(bytes_of(all)),
                                     call_of(group, "all-gather of parts"));
  } else {
    all.copy_(part.unsqueeze(0).expand(sizes));
  }
  torch::Tensor whole =
      torch::empty(with_size(part, cut.dim, size), part.options().requires_grad(false));
  for (int64_t i = 0; i < cut.parts; ++i)
    place_in(whole, cut, i)
        .copy_(in_blocks(all[i].narrow(cut.dim, 0, cut.length(size, i) * cut.blocks), cut));
  return whole;
}

torch::Tensor scattered(const TensorGroup& group, const torch::Tensor& share,
                        const TensorCut& cut) {
  const int64_t size = share.size(cut.dim);
  const int64_t length = cut.length(size, 0) * cut.blocks;
  std::vector<int64_t> sizes = with_size(share, cut.dim, length);
  sizes.insert(sizes.begin(), cut.parts);
  const torch::Tensor all = torch::zeros(sizes, share.options().requires_grad(false));
  for (int64_t i = 0; i < cut.parts; ++i)
    in_blocks(all[i].narrow(cut.dim, 0, cut.length(size, i) * cut.blocks), cut)
        .copy_(place_in(share, cut, i));
  if (group.communicator && all.numel() > 0)
    group.communicator->reduce_scatter(buffer_of(all), comm::Reduction::sum,
                                       call_of(group, "reduce-scatter of shares"));
  const int64_t mine = cut.length(size, group.index) * cut.blocks;
  return all[group.index].narrow(cut.dim, 0, mine).clone(at::MemoryFormat::Contiguous);
}

torch::Tensor padded(const torch::Tensor& part, const TensorCut& cut, int64_t index) {
  const int64_t size = cut.whole_of(part.size(cut.dim));
  torch::Tensor whole =
      torch::zeros(with_size(part, cut.dim, size), part.options().requires_grad(false));
  place_in(whole, cut, index).copy_(in_blocks(part, cut));
  return whole;
}

}  // namespace renkei::run
