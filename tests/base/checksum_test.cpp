#include "base/checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/philox.h"

namespace renkei {
namespace {

std::vector<std::byte> random_bytes(size_t count) {
  Random random(7, RandomUse::random_input, 0, count);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The definition, a bit at a time.
uint32_t crc32c_by_bits(std::span<const std::byte> bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

TEST(Crc32c, GivesTheValuesOfRfc3720) {
  std::string ascending, descending;
  for (char value = 0; value < 32; ++value) {
    ascending += value;
    descending += static_cast<char>(31 - value);
  }
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c(descending), 0x113FDB5Cu);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, AgreesWithTheTableAndWithTheDefinitionAtEveryLengthAndAlignment) {
  for (size_t count = 0; count < 100; ++count) {
    const auto bytes = random_bytes(count + 8);
    for (size_t offset = 0; offset < 8; ++offset) {
      const auto part = std::span(bytes).subspan(offset, count);
      ASSERT_EQ(crc32c(part), crc32c_by_bits(part)) << count << " bytes at " << offset;
      ASSERT_EQ(crc32c_by_table(part), crc32c_by_bits(part)) << count << " bytes at " << offset;
    }
  }
}

TEST(Crc32c, ContinuesFromTheChecksumOfAnEarlierPart) {
  const auto bytes = random_bytes(50);
  const auto all = std::span(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
    EXPECT_EQ(crc32c_by_table(all.subspan(cut), crc32c_by_table(all.first(cut))), crc32c(all));
  }
}

TEST(Checksum, IsXxh3) {
  EXPECT_EQ(Checksum().value(), 0x2D06800538D394C2u);
  EXPECT_EQ(Checksum().hex(), "2d06800538d394c2");
}

TEST(Checksum, DoesNotDependOnHowTheStreamIsCut) {
  const auto bytes = random_bytes(100003);
  const uint64_t whole = Checksum().add(bytes).value();
  for (size_t part_bytes : {1, 7, 256, 4096, 99999}) {
    Checksum in_parts;
    for (std::span<const std::byte> rest = bytes; !rest.empty();) {
      const size_t count = std::min(part_bytes, rest.size());
      in_parts.add(rest.first(count));
      rest = rest.subspan(count);
    }
    EXPECT_EQ(in_parts.value(), whole) << "in parts of " << part_bytes;
  }
}

TEST(Checksum, ChangesWithEveryByte) {
  auto bytes = random_bytes(300);
  const uint64_t before = Checksum().add(bytes).value();
  for (std::byte& byte : bytes) {
    byte ^= std::byte{1};
    EXPECT_NE(Checksum().add(bytes).value(), before);
    byte ^= std::byte{1};
  }
}

TEST(Checksum, GoesOnAfterItsValueWasRead) {
  Checksum checksum;
  checksum.add("one ");
  EXPECT_EQ(checksum.value(), Checksum().add("one ").value());
  checksum.add(std::string_view()).add("two");
  EXPECT_EQ(checksum.value(), Checksum().add("one two").value());
}

TEST(Checksum, HasSixteenHexDigitsAlsoWhenTheValueIsSmall) {
  // Finds an input whose hash begins with a zero digit, which one in sixteen does.
  for (int number = 0; number < 1000; ++number) {
    Checksum checksum;
    checksum.add(std::to_string(number));
    ASSERT_EQ(checksum.hex().size(), 16u);
    if (checksum.value() < (uint64_t{1} << 60)) {
      EXPECT_EQ(checksum.hex().front(), '0');
      return;
    }
  }
  FAIL() << "no hash began with a zero";
}

}  // namespace
}  // namespace renkei
