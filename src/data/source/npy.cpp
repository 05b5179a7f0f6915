// The .npy format: "\x93NUMPY", version, length of the header (2 bytes in version 1, 4 in 2 and 3),
// then a Python dictionary as text, padded with blanks to a multiple of 64:
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
#include "data/source/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace renkei::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxHeader = 1 << 20;

struct Header {
  std::string_view text;
  int64_t data_offset;
};

// Reads as a person would: find the key, then the value after its colon.
std::string_view value_of(std::string_view text, std::string_view key) {
  const size_t at = text.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) return {};
  const size_t colon = text.find(':', at);
  if (colon == std::string_view::npos) return {};
  const size_t begin = text.find_first_not_of(' ', colon + 1);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

bool parse_type(std::string_view value, ElementType& type) {
  // '<f4' with its quotes.
  if (value.size() < 5 || value[0] != '\'' || value[4] != '\'') return false;
  const char order = value[1], kind = value[2];
  type.bytes = value[3] - '0';
  type.big_endian = order == '>';
  if (kind == 'b')
    type.kind = ElementKind::boolean;
  else if (kind == 'u')
    type.kind = ElementKind::unsigned_integer;
  else if (kind == 'i')
    type.kind = ElementKind::signed_integer;
  else if (kind == 'f')
    type.kind = ElementKind::floating;
  else
    return false;
  const bool size_is_right =
      type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
  return size_is_right && (kind != 'f' || type.bytes > 1) && (kind != 'b' || type.bytes == 1) &&
         (order == '<' || order == '>' || order == '|' || order == '=');
}

bool parse_shape(std::string_view value, std::vector<int64_t>& shape) {
  if (!value.starts_with('(')) return false;
  const size_t close = value.find(')');
  if (close == std::string_view::npos) return false;
  const char* at = value.data() + 1;
  const char* const end = value.data() + close;
  while (true) {
    while (at != end && (*at == ' ' || *at == ',')) ++at;
    if (at == end) return shape.size() <= 32;
    int64_t side = 0;
    const auto parsed = std::from_chars(at, end, side);
    if (parsed.ec != std::errc{} || side < 0) return false;
    shape.push_back(side);
    at = parsed.ptr;
  }
}

NpyHeader parse_text(std::string_view text, std::string_view name, int64_t offset,
                     int64_t data_offset) {
  NpyHeader header{.data_offset = data_offset};
  if (!parse_type(value_of(text, "descr"), header.type))
    throw Error(
        ErrorCode::data,
        fmt::format("{}: the array (at offset {}) does not hold plain numbers", name, offset),
        "save it with a type such as uint8 or float32");
  if (!value_of(text, "fortran_order").starts_with("False"))
    throw Error(
        ErrorCode::data,
        fmt::format("{}: the array (at offset {}) is stored column by column", name, offset),
        "save numpy.ascontiguousarray(x) instead");
  if (!parse_shape(value_of(text, "shape"), header.shape) ||
      !fits_in_memory_range(header.shape, header.type.bytes))
    throw damaged(name, offset, "the array has no shape that makes sense");
  return header;
}

// The prefix tells how long the header is: 0 if it is none.
int64_t header_length(std::string_view prefix) {
  if (!looks_like_npy(prefix) || prefix.size() < 12) return 0;
  const auto byte = [&](size_t i) {
    return static_cast<int64_t>(static_cast<unsigned char>(prefix[i]));
  };
  if (byte(6) == 1) return 10 + byte(8) + (byte(9) << 8);
  if (byte(6) > 3) return 0;
  return 12 + byte(8) + (byte(9) << 8) + (byte(10) << 16) + (byte(11) << 24);
}

void check_size(const NpyHeader& header, std::string_view name, int64_t offset, int64_t length) {
  int64_t bytes = header.type.bytes;
  for (const int64_t side : header.shape) bytes *= side;
  if (bytes > length - header.data_offset)
    throw damaged(name, offset,
                  fmt::format("an array of {} bytes does not fit into {}", bytes, length));
}

}  // namespace

bool looks_like_npy(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

NpyHeader read_npy_header(const ByteFile& file, int64_t offset, int64_t length) {
  const int64_t bytes = header_length(file.read(offset, std::min<int64_t>(length, 12)));
  if (bytes == 0 || bytes > std::min(length, kMaxHeader))
    throw damaged(file.name(), offset, "this is not a .npy array");
  NpyHeader header = parse_text(file.read(offset, bytes), file.name(), offset, bytes);
  check_size(header, file.name(), offset, length);
  return header;
}

NpyHeader parse_npy_header(std::string_view bytes, std::string_view name) {
  return parse_npy_head(bytes, name, static_cast<int64_t>(bytes.size()));
}

NpyHeader parse_npy_head(std::string_view head, std::string_view name, int64_t length) {
  const int64_t bytes = header_length(head);
  if (bytes == 0 || bytes > static_cast<int64_t>(head.size()))
    throw damaged(name, 0, "this is not a .npy array");
  NpyHeader header = parse_text(head.substr(0, static_cast<size_t>(bytes)), name, 0, bytes);
  check_size(header, name, 0, length);
  return header;
}

std::string make_npy_header(ElementType type, const std::vector<int64_t>& shape) {
  const char kind = type.kind == ElementKind::floating         ? 'f'
                    : type.kind == ElementKind::signed_integer ? 'i'
                    : type.kind == ElementKind::boolean        ? 'b'
                                                               : 'u';
  const char order = type.bytes == 1 ? '|' : type.big_endian ? '>' : '<';
  std::string text = fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': (", order,
                                 kind, type.bytes);
  for (const int64_t side : shape) text += fmt::format("{}, ", side);
  text += "), }";
  text.append((64 - (10 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace renkei::data
