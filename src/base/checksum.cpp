#include "base/checksum.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <array>
#include <cstring>
#include <new>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace renkei {
namespace {

// Entry b is the remainder of the byte b, for the polynomial 0x1EDC6F41 with its bits reversed.
constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ (remainder & 1 ? 0x82F63B78 : 0);
    table[byte] = remainder;
  }
  return table;
}();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                                 uint32_t seed) {
  uint64_t crc = ~seed;
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    crc = _mm_crc32_u64(crc, word);
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes)
    crc = _mm_crc32_u8(static_cast<uint32_t>(crc), std::to_integer<uint8_t>(byte));
  return ~static_cast<uint32_t>(crc);
}
#endif

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t seed) {
  uint32_t crc = ~seed;
  for (const std::byte byte : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ std::to_integer<uint32_t>(byte)) & 0xFF];
  return ~crc;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t seed) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_by_instruction(bytes, seed);
#endif
  return crc32c_by_table(bytes, seed);
}

uint32_t crc32c(std::string_view bytes, uint32_t seed) {
  return crc32c(as_bytes(bytes), seed);
}

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

Checksum& Checksum::add(std::span<const std::byte> bytes) {
  // Debian's xxHash 0.8.1 does arithmetic on the pointer even when there is nothing to add.
  if (!bytes.empty()) XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  return *this;
}

Checksum& Checksum::add(std::string_view bytes) {
  return add(as_bytes(bytes));
}

uint64_t Checksum::value() const {
  return XXH3_64bits_digest(state_.get());
}

std::string Checksum::hex() const {
  return fmt::format("{:016x}", value());
}

}  // namespace renkei
