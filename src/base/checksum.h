#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

// The C type behind XXH3_state_t; its header stays out of ours.
struct XXH3_state_s;

namespace renkei {

// CRC-32C (Castagnoli), the checksum that TFRecord files carry. A long input may come in parts:
// crc32c(b, crc32c(a)) is the checksum of a followed by b.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t seed = 0);
uint32_t crc32c(std::string_view bytes, uint32_t seed = 0);

// What crc32c falls back to on a processor without an instruction for it; the oracle in tests.
uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t seed = 0);

// The 64-bit XXH3 hash of a stream of bytes: as fast as memory and good against accidents, but no
// protection against an adversary. How the stream is cut into parts does not matter.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  Checksum& add(std::span<const std::byte> bytes);
  Checksum& add(std::string_view bytes);

  uint64_t value() const;   // of all bytes so far; more may be added afterwards
  std::string hex() const;  // the same as 16 digits

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace renkei
