#include "tensors.h"

#include "base/error.h"

namespace renkei::python {
namespace {

comm::DType dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return comm::DType::f32;
    case at::kDouble:
      return comm::DType::f64;
    case at::kHalf:
      return comm::DType::f16;
    case at::kBFloat16:
      return comm::DType::bf16;
    case at::kLong:
      return comm::DType::i64;
    case at::kInt:
      return comm::DType::i32;
    case at::kShort:
      return comm::DType::i16;
    case at::kChar:
      return comm::DType::i8;
    case at::kByte:
      return comm::DType::uint8;
    case at::kUInt16:
      return comm::DType::uint16;
    case at::kUInt32:
      return comm::DType::uint32;
    case at::kUInt64:
      return comm::DType::uint64;
    case at::kBool:
      return comm::DType::boolean;
    default:
      throw Error(ErrorCode::usage,
                  fmt::format("tensors of {} can be moved, but not reduced", at::toString(type)),
                  "convert them first, to float32 for example");
  }
}

}  // namespace

comm::Buffer buffer_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<size_t>(tensor.numel()),
          dtype_of(tensor.scalar_type())};
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace renkei::python
