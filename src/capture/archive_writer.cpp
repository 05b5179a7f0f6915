#include "capture/archive_writer.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace renkei::capture {
namespace {

constexpr int64_t kPiece = 8 << 20;
constexpr size_t kAlignment = 64;      // as PyTorch aligns tensors
constexpr int64_t kMost = 0xffffffff;  // more takes the fields of zip64
constexpr uint16_t kVersion = 45;      // the first with zip64
constexpr uint16_t kDay = 0x21;  // the first day that zip files know: the same file every time
constexpr uint16_t kZip64 = 0x0001, kPadding = 0x4246;

template <typename Number>
void put(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

uint32_t fits_32(int64_t number) {
  return static_cast<uint32_t>(std::min(number, kMost));
}

// Calls use(piece) with all bytes, in order.
void in_pieces(int64_t bytes, const ReadBytes& read,
               const std::function<void(std::string_view)>& use) {
  std::string piece;
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(piece.size())) {
    piece.resize(static_cast<size_t>(std::min(kPiece, bytes - at)));
    read(at, piece);
    use(piece);
  }
}

// What local and central headers have in common: from the version to the length of the name.
void put_common(std::string& text, uint32_t crc, int64_t bytes, size_t name) {
  put<uint16_t>(text, kVersion);
  put<uint16_t>(text, 0x0800);  // the name is UTF-8
  put<uint16_t>(text, 0);       // stored as it is
  put<uint16_t>(text, 0);
  put<uint16_t>(text, kDay);
  put(text, crc);
  put(text, fits_32(bytes));
  put(text, fits_32(bytes));
  put(text, static_cast<uint16_t>(name));
}

}  // namespace

ArchiveWriter::ArchiveWriter(const std::string& path, std::string root)
    : out_(data::open_storage(path)->create(path)), root_(std::move(root)) {}

void ArchiveWriter::append(std::string_view bytes) {
  out_->append(bytes);
  at_ += static_cast<int64_t>(bytes.size());
}

void ArchiveWriter::add(const std::string& path, std::string_view content) {
  add(path, static_cast<int64_t>(content.size()), [&](int64_t begin, std::span<char> into) {
    std::memcpy(into.data(), content.data() + begin, into.size());
  });
}

void ArchiveWriter::add(const std::string& path, int64_t bytes, const ReadBytes& read) {
  Member member{.name = root_ + "/" + path, .bytes = bytes, .offset = at_};
  in_pieces(bytes, read, [&](std::string_view piece) {
    member.crc32 =
        static_cast<uint32_t>(::crc32_z(member.crc32, reinterpret_cast<const Bytef*>(piece.data()),
                                        static_cast<z_size_t>(piece.size())));
  });
  std::string extra;
  if (bytes >= kMost) {
    put(extra, kZip64);
    put<uint16_t>(extra, 16);
    put(extra, bytes);
    put(extra, bytes);
  }
  constexpr size_t kHeader = 30, kField = 4;
  const size_t begin =
      static_cast<size_t>(at_) + kHeader + member.name.size() + extra.size() + kField;
  put(extra, kPadding);
  const size_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  put(extra, static_cast<uint16_t>(padding));
  extra.append(padding, 'Z');
  std::string header = "PK\x03\x04";
  put_common(header, member.crc32, bytes, member.name.size());
  put(header, static_cast<uint16_t>(extra.size()));
  append(header + member.name + extra);
  in_pieces(bytes, read, [&](std::string_view piece) { append(piece); });
  members_.push_back(std::move(member));
}

void ArchiveWriter::finish() {
  const int64_t begin = at_;
  for (const Member& member : members_) {
    std::string extra;
    if (member.bytes >= kMost || member.offset >= kMost) {
      std::string large;
      if (member.bytes >= kMost) {
        put(large, member.bytes);
        put(large, member.bytes);
      }
      if (member.offset >= kMost) put(large, member.offset);
      put(extra, kZip64);
      put(extra, static_cast<uint16_t>(large.size()));
      extra += large;
    }
    std::string header = "PK\x01\x02";
    put<uint16_t>(header, kVersion);  // that made it
    put_common(header, member.crc32, member.bytes, member.name.size());
    put(header, static_cast<uint16_t>(extra.size()));
    header.append(10, '\0');  // no comment, first disk, no attributes
    put(header, fits_32(member.offset));
    append(header + member.name + extra);
  }
  const int64_t size = at_ - begin, end = at_;
  const auto count = static_cast<int64_t>(members_.size());
  std::string tail;
  if (begin >= kMost || size >= kMost || count >= 0xffff) {
    tail += "PK\x06\x06";
    put<int64_t>(tail, 44);  // what follows
    put<uint16_t>(tail, kVersion);
    put<uint16_t>(tail, kVersion);
    put<int64_t>(tail, 0);  // one disk
    put(tail, count);
    put(tail, count);
    put(tail, size);
    put(tail, begin);
    tail += "PK\x06\x07";
    put<uint32_t>(tail, 0);
    put(tail, end);
    put<uint32_t>(tail, 1);
  }
  tail += "PK\x05\x06";
  put<uint32_t>(tail, 0);
  const auto short_count = static_cast<uint16_t>(std::min<int64_t>(count, 0xffff));
  put(tail, short_count);
  put(tail, short_count);
  put(tail, fits_32(size));
  put(tail, fits_32(begin));
  put<uint16_t>(tail, 0);  // no comment
  append(tail);
  out_->finish();
}

}  // namespace renkei::capture
