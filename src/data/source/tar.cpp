// The tar format: blocks of 512 bytes. A member is a header, then its data, padded to whole blocks.
//
//   offset    0  100 108 116 124  136   148      156      157  257   263     265 … 345    500
//             name mode uid gid size mtime checksum type link magic version         prefix
//
// Numbers are octal text or, with the first bit set, binary. The checksum is the sum of the
// header's bytes, its own taken as blanks. Names that don't fit come in members of their own
// before: type L (GNU: the name itself) or x (pax: "LENGTH KEY=VALUE\n" records); type g is x for
// all that follow.
#include "data/source/tar.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace renkei::data {
namespace {

constexpr int64_t kBlock = 512;
// Longer names are no names.
constexpr int64_t kMaxExtra = 1 << 20;

std::string_view text_field(std::string_view header, size_t begin, size_t length) {
  const std::string_view field = header.substr(begin, length);
  return field.substr(0, field.find('\0'));
}

std::optional<int64_t> number_field(std::string_view header, size_t begin, size_t length) {
  std::string_view field = header.substr(begin, length);
  if (static_cast<unsigned char>(field[0]) & 0x80) {
    uint64_t value = static_cast<unsigned char>(field[0]) & 0x7F;
    for (const char byte : field.substr(1)) {
      if (value >> 54) return {};
      value = value << 8 | static_cast<unsigned char>(byte);
    }
    return static_cast<int64_t>(value);
  }
  const auto is_padding = [](char c) { return c == ' ' || c == '\0'; };
  while (!field.empty() && is_padding(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_padding(field.back())) field.remove_suffix(1);
  if (field.empty()) return 0;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(field.begin(), field.end(), value, 8);
  if (error != std::errc{} || end != field.end() || value < 0) return {};
  return value;
}

// Old writers added up signed bytes; both sums are accepted, as all readers do.
bool checksum_is_right(std::string_view header) {
  const auto claimed = number_field(header, 148, 8);
  int64_t as_unsigned = 0, as_signed = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    const char byte = i >= 148 && i < 156 ? ' ' : header[i];
    as_unsigned += static_cast<unsigned char>(byte);
    as_signed += static_cast<signed char>(byte);
  }
  return claimed && (*claimed == as_unsigned || *claimed == as_signed);
}

std::string name_of(std::string_view header) {
  const std::string_view name = text_field(header, 0, 100);
  // GNU's own format ("ustar  ") has other things where POSIX has the prefix.
  if (header.substr(257, 6) != std::string_view("ustar\0", 6)) return std::string(name);
  const std::string_view prefix = text_field(header, 345, 155);
  return prefix.empty() ? std::string(name) : fmt::format("{}/{}", prefix, name);
}

void put(std::string& header, size_t at, std::string_view text) {
  std::memcpy(&header[at], text.data(), text.size());
}

std::string plain_header(std::string_view name, int64_t size, char type) {
  std::string header(kBlock, '\0');
  put(header, 0, name.substr(0, 100));
  put(header, 100, "0000644");
  put(header, 108, "0000000");
  put(header, 116, "0000000");
  if (size < int64_t{1} << 33) {
    put(header, 124, fmt::format("{:011o}", size));
  } else {
    for (int byte = 0; byte < 11; ++byte)
      header[static_cast<size_t>(135 - byte)] =
          byte < 8 ? static_cast<char>(size >> (8 * byte) & 0xFF) : '\0';
    header[124] = '\x80';
  }
  put(header, 136, "00000000000");
  header[156] = type;
  put(header, 257, std::string_view("ustar\00000", 8));
  put(header, 148, "        ");
  int64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(header, 148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header;
}

}  // namespace

Error TarReader::broken(std::string_view what) const {
  return damaged(reader_.file().name(), header_offset_, fmt::format("the tar archive {}", what));
}

std::string TarReader::read_extra(int64_t size) {
  if (size > kMaxExtra) throw broken(fmt::format("has a name of {} bytes", size));
  std::string bytes(reader_.take(size));
  reader_.skip(tar_padding(size));
  return bytes;
}

void TarReader::read_pax(int64_t size, Overrides& into) {
  const std::string text = read_extra(size);
  for (std::string_view rest = text; !rest.empty();) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(rest.begin(), rest.end(), length);
    const auto digits = static_cast<size_t>(end - rest.begin());
    if (error != std::errc{} || length > rest.size() || length < digits + 3 ||
        rest[digits] != ' ' || rest[length - 1] != '\n')
      throw broken("has a damaged pax header");
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) throw broken("has a damaged pax header");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") into.name = std::string(value);
    if (key == "size") {
      int64_t bytes = 0;
      const auto parsed = std::from_chars(value.begin(), value.end(), bytes);
      if (parsed.ec != std::errc{} || parsed.ptr != value.end() || bytes < 0)
        throw broken("has a damaged pax header");
      into.size = bytes;
    }
    if (key.starts_with("GNU.sparse.")) throw broken("holds a sparse file, which is not supported");
    rest.remove_prefix(length);
  }
}

std::optional<TarMember> TarReader::next() {
  Overrides own = global_;
  while (reader_.left() > 0) {
    header_offset_ = reader_.offset();
    if (reader_.left() < kBlock) throw broken("ends within a header");
    const std::string header(reader_.take(kBlock));
    if (header.find_first_not_of('\0') == std::string::npos) return {};
    if (!checksum_is_right(header)) throw broken("has a header with a wrong checksum");
    const auto size = number_field(header, 124, 12);
    if (!size) throw broken("has a header without a size");
    const char type = header[156];
    if (type == 'L' || type == 'K') {
      const std::string name = read_extra(*size);
      if (type == 'L') own.name = name.substr(0, name.find('\0'));
    } else if (type == 'x') {
      read_pax(*size, own);
    } else if (type == 'g') {
      read_pax(*size, global_);
      own = global_;
    } else if (type == 'S') {
      throw broken("holds a sparse file, which is not supported");
    } else {
      const int64_t bytes = own.size.value_or(*size);
      TarMember member{
          .name = own.name.value_or(name_of(header)), .offset = reader_.offset(), .size = bytes};
      // Links and directories have no data, whatever their size says.
      const bool has_data = type < '1' || type > '6';
      if (has_data) {
        if (bytes > reader_.left())
          throw broken(fmt::format("ends within its member '{}'", member.name));
        reader_.skip(bytes);
        reader_.skip(std::min(tar_padding(bytes), reader_.left()));
      }
      const bool regular = type == '0' || type == '\0' || type == '7';
      if (regular && !member.name.ends_with('/')) return member;
      own = global_;
    }
  }
  return {};
}

std::optional<TarName> split_tar_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return {};
  return TarName{.key = name.substr(0, dot), .extension = name.substr(dot + 1)};
}

std::string make_tar_header(std::string_view name, int64_t size) {
  if (name.size() <= 100) return plain_header(name, size, '0');
  // The length of a pax record counts its own digits.
  size_t length = name.size() + 7;
  while (fmt::format("{} path={}\n", length, name).size() != length) ++length;
  std::string record = fmt::format("{} path={}\n", length, name);
  std::string header = plain_header("PaxHeaders/name", static_cast<int64_t>(record.size()), 'x');
  record.resize(record.size() +
                static_cast<size_t>(tar_padding(static_cast<int64_t>(record.size()))));
  return header + record + plain_header(name, size, '0');
}

}  // namespace renkei::data
