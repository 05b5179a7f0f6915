#include "run/buffers.h"

#include "base/checksum.h"

namespace renkei::run {
namespace {

template <class Number>
void average_those_of(const std::vector<torch::Tensor>& buffers, comm::Communicator& communicator,
                      const comm::Call& call) {
  const auto ranks = static_cast<Number>(communicator.transport().size());
  std::vector<Number> flat;
  const auto for_each = [&](auto action) {
    for (const torch::Tensor& buffer : buffers)
      if (buffer.scalar_type() == c10::CppTypeToScalarType<Number>::value && buffer.is_contiguous())
        action(buffer.data_ptr<Number>(), buffer.numel());
  };
  for_each([&](Number* values, int64_t count) { flat.insert(flat.end(), values, values + count); });
  if (flat.empty()) return;
  communicator.allreduce(comm::Buffer(std::span(flat)), comm::Reduction::sum, call);
  const Number* next = flat.data();
  for_each([&](Number* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] = *next++ / ranks;
  });
}

}  // namespace

std::span<std::byte> bytes_of(const torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

void broadcast_state(const std::vector<torch::Tensor>& state, comm::Communicator& communicator,
                     const comm::Call& call) {
  for (const torch::Tensor& tensor : state)
    communicator.broadcast(comm::Buffer(bytes_of(tensor)), 0, call);
}

void average_buffers(const std::vector<torch::Tensor>& buffers, comm::Communicator& communicator,
                     const comm::Call& call) {
  if (communicator.transport().size() == 1) return;
  average_those_of<float>(buffers, communicator, call);
  average_those_of<double>(buffers, communicator, call);
}

uint64_t checksum_of(const torch::Tensor& tensor) {
  return Checksum().add(bytes_of(tensor.contiguous())).value();
}

}  // namespace renkei::run
