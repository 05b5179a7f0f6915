// Small files of each format, as bytes.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/source/npy.h"
#include "data/source/tar.h"
#include "data/source/tfrecord.h"

namespace renkei::data {

template <typename T>
std::string as_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

inline std::string tar_member(std::string_view name, std::string_view content) {
  const auto size = static_cast<int64_t>(content.size());
  return make_tar_header(name, size) + std::string(content) +
         std::string(static_cast<size_t>(tar_padding(size)), '\0');
}

inline std::string tar_end() {
  return std::string(1024, '\0');
}

inline std::string npy(ElementType type, const std::vector<int64_t>& shape, std::string_view data) {
  return make_npy_header(type, shape) + std::string(data);
}

inline std::string deflate_raw(std::string_view content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string zip(const std::vector<std::pair<std::string, std::string>>& members,
                       bool deflated) {
  std::string archive, directory;
  for (const auto& [name, content] : members) {
    const std::string stored = deflated ? deflate_raw(content) : content;
    const auto crc = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(content.data()),
                                                 static_cast<uInt>(content.size())));
    const std::string common =
        little_endian<uint16_t>(20) + little_endian<uint16_t>(0) +
        little_endian<uint16_t>(deflated ? 8 : 0) + little_endian<uint32_t>(0) +
        little_endian(crc) + little_endian(static_cast<uint32_t>(stored.size())) +
        little_endian(static_cast<uint32_t>(content.size())) +
        little_endian(static_cast<uint16_t>(name.size())) + little_endian<uint16_t>(0);
    directory += "PK\x01\x02" + little_endian<uint16_t>(20) + common + little_endian<uint16_t>(0) +
                 little_endian<uint16_t>(0) + little_endian<uint16_t>(0) +
                 little_endian<uint32_t>(0) + little_endian(static_cast<uint32_t>(archive.size())) +
                 name;
    archive += "PK\x03\x04" + common + name + stored;
  }
  const auto count = static_cast<uint16_t>(members.size());
  return archive + directory + "PK\x05\x06" + little_endian<uint32_t>(0) + little_endian(count) +
         little_endian(count) + little_endian(static_cast<uint32_t>(directory.size())) +
         little_endian(static_cast<uint32_t>(archive.size())) + little_endian<uint16_t>(0);
}

// A field of a protocol buffer that is a piece of bytes.
inline std::string proto(int field, std::string_view piece) {
  std::string bytes(1, static_cast<char>(field << 3 | 2));
  size_t length = piece.size();
  for (; length >= 0x80; length >>= 7) bytes += static_cast<char>((length & 0x7F) | 0x80);
  bytes += static_cast<char>(length);
  return bytes + std::string(piece);
}

inline std::string example(std::string_view image, int label) {
  const std::string value = label < 128 ? std::string(1, static_cast<char>(label))
                                        : std::string{static_cast<char>((label & 0x7F) | 0x80),
                                                      static_cast<char>(label >> 7)};
  const std::string integers = proto(3, proto(1, value));
  const std::string encoded = proto(1, proto(1, image));
  return proto(1, proto(1, proto(1, "image/encoded") + proto(2, encoded)) +
                      proto(1, proto(1, "image/class/label") + proto(2, integers)));
}

inline std::string tf_record(std::string_view payload) {
  const std::string length = little_endian(uint64_t{payload.size()});
  return length + little_endian(masked_crc32c(length)) + std::string(payload) +
         little_endian(masked_crc32c(payload));
}

}  // namespace renkei::data
