#pragma once

#include <memory>

#include "comm/buffer/dtype.h"

namespace renkei::comm {

// Memory that a collective needs beside its buffer, not initialised. A buffer without bytes needs
// none, so there is none then, and the places in it are such buffers and spans too.
class Scratch {
 public:
  Scratch() = default;
  Scratch(Buffer buffer, size_t bytes)
      : memory_(buffer.data ? std::make_unique_for_overwrite<std::byte[]>(bytes) : nullptr) {}

  std::span<std::byte> span(size_t offset, size_t bytes) const {
    return {memory_ ? memory_.get() + offset : nullptr, bytes};
  }
  Buffer buffer(size_t offset, size_t count, DType dtype) const {
    return {span(offset, 0).data(), count, dtype};
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace renkei::comm
