// The zip format, read from its end: a record there says where the directory is, which has a record
// for each member that says where its local header is, after which its bytes follow. Archives of
// more than 4 GiB put 0xFFFFFFFF in the old fields and the truth into records of their own
// ("zip64").
#include "data/source/zip.h"

#include <sys/statvfs.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "data/storage/local_storage.h"
#include "data/storage/sequential_reader.h"

namespace renkei::data {
namespace {

constexpr uint32_t kEndSignature = 0x06054b50, kEnd64Locator = 0x07064b50, kEnd64 = 0x06064b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr int64_t kEndBytes = 22, kMaxComment = 65535;

template <typename T>
T get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

struct Directory {
  uint64_t entries = 0;
  uint64_t offset = 0;
};

Directory find_directory(const ByteFile& file) {
  const auto broken = [&](int64_t offset) {
    return damaged(file.name(), offset, "the zip archive has no directory at its end");
  };
  const int64_t tail = std::min(file.size(), kEndBytes + kMaxComment);
  const std::string end = file.read(file.size() - tail, tail);
  for (int64_t at = tail - kEndBytes; at >= 0; --at) {
    const auto place = static_cast<size_t>(at);
    if (get<uint32_t>(end, place) != kEndSignature) continue;
    Directory found{.entries = get<uint16_t>(end, place + 10),
                    .offset = get<uint32_t>(end, place + 16)};
    if (found.entries != 0xFFFF && found.offset != 0xFFFFFFFF) return found;
    if (at < 20 || get<uint32_t>(end, place - 20) != kEnd64Locator) return found;
    const auto end64 = static_cast<int64_t>(get<uint64_t>(end, place - 12));
    const std::string record = file.read(end64, 56);
    if (get<uint32_t>(record, 0) != kEnd64) throw broken(end64);
    return {.entries = get<uint64_t>(record, 32), .offset = get<uint64_t>(record, 48)};
  }
  throw broken(file.size() - tail);
}

// The extra field 1 holds those of the three numbers that did not fit, in this order.
void read_zip64_extra(std::string_view extra, uint64_t& size, uint64_t& stored, uint64_t& offset) {
  while (extra.size() >= 4) {
    const auto kind = get<uint16_t>(extra, 0);
    const size_t length = std::min<size_t>(get<uint16_t>(extra, 2), extra.size() - 4);
    std::string_view body = extra.substr(4, length);
    if (kind == 1)
      for (uint64_t* field : {&size, &stored, &offset})
        if (*field == 0xFFFFFFFF && body.size() >= 8) {
          *field = get<uint64_t>(body, 0);
          body.remove_prefix(8);
        }
    extra.remove_prefix(4 + length);
  }
}

// The local header repeats the name and has an extra field of its own length.
int64_t data_offset(const ByteFile& file, uint64_t header_offset) {
  const auto at = static_cast<int64_t>(header_offset);
  const std::string header = file.read(at, 30);
  if (get<uint32_t>(header, 0) != kLocalHeader)
    throw damaged(file.name(), at, "the zip archive has no member where its directory says");
  return at + 30 + get<uint16_t>(header, 26) + get<uint16_t>(header, 28);
}

ZipMember read_entry(SequentialReader& reader) {
  const ByteFile& file = reader.file();
  const int64_t at = reader.offset();
  const std::string entry(reader.take(46));
  if (get<uint32_t>(entry, 0) != kDirectoryEntry)
    throw damaged(file.name(), at, "the directory of the zip archive is damaged");
  uint64_t stored = get<uint32_t>(entry, 20), size = get<uint32_t>(entry, 24),
           offset = get<uint32_t>(entry, 42);
  const auto flags = get<uint16_t>(entry, 8), method = get<uint16_t>(entry, 10);
  ZipMember member{.name = std::string(reader.take(get<uint16_t>(entry, 28))),
                   .crc32 = get<uint32_t>(entry, 16)};
  read_zip64_extra(std::string(reader.take(get<uint16_t>(entry, 30))), size, stored, offset);
  reader.skip(get<uint16_t>(entry, 32));
  if ((flags & 1) != 0 || (method != 0 && method != 8))
    throw Error(ErrorCode::data,
                fmt::format("{}: the member '{}' is encrypted or compressed in an unusual way",
                            file.name(), member.name),
                "save it with numpy.savez or numpy.savez_compressed");
  member.offset = data_offset(file, offset);
  member.deflated = method == 8;
  if (stored > static_cast<uint64_t>(file.size()) ||
      member.offset > file.size() - static_cast<int64_t>(stored) || size >> 62 != 0 ||
      (!member.deflated && size != stored))
    throw damaged(file.name(), at,
                  fmt::format("the member '{}' of the zip archive ends beyond it", member.name));
  member.size = static_cast<int64_t>(size);
  member.stored_size = static_cast<int64_t>(stored);
  return member;
}

class Inflater {
 public:
  Inflater() {
    if (::inflateInit2(&stream_, -15) != Z_OK)
      throw Error(ErrorCode::memory, "there is no memory to unpack a zip archive");
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  z_stream* operator->() { return &stream_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
};

class DeflatedMember : public ByteFile {
 public:
  DeflatedMember(std::shared_ptr<const ByteFile> file, const ZipMember& member)
      : ByteFile(fmt::format("{}:{}", file->name(), member.name), member.size),
        file_(std::move(file)),
        member_(member) {}

 private:
  void read_inside(int64_t offset, std::span<char> into) const override {
    std::call_once(is_unpacked_, [&] { unpacked_ = unpack_zip_member(*file_, member_); });
    unpacked_->read(offset, into);
  }

  std::shared_ptr<const ByteFile> file_;
  ZipMember member_;
  mutable std::once_flag is_unpacked_;
  mutable std::shared_ptr<const ByteFile> unpacked_;
};

void refuse_if_too_large(const ByteFile& file, const ZipMember& member) {
  struct statvfs status {};
  const std::string directory = std::filesystem::temp_directory_path().string();
  if (::statvfs(directory.c_str(), &status) != 0) return;
  const double available =
      static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  // Deflate packs at most 1032 to 1: more than that is a lie.
  const bool plausible = member.size / 1032 <= member.stored_size + 1;
  if (!plausible)
    throw damaged(file.name(), member.offset,
                  fmt::format("the member '{}' claims to hold {} bytes in {}", member.name,
                              member.size, member.stored_size));
  if (static_cast<double>(member.size) > available)
    throw Error(ErrorCode::data,
                fmt::format("{}: unpacking '{}' takes {} bytes, and {} has {:.0f}", file.name(),
                            member.name, member.size, directory, available),
                "set TMPDIR to a directory with more space, or pack the file: renkei data pack");
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const ByteFile& file) {
  const Directory directory = find_directory(file);
  if (directory.offset > static_cast<uint64_t>(file.size()) ||
      directory.entries > static_cast<uint64_t>(file.size()) / 46)
    throw damaged(file.name(), file.size(), "the directory of the zip archive is out of place");
  SequentialReader reader(file);
  reader.skip(static_cast<int64_t>(directory.offset));
  std::vector<ZipMember> members;
  for (uint64_t i = 0; i < directory.entries; ++i) members.push_back(read_entry(reader));
  return members;
}

std::shared_ptr<const ByteFile> unpack_zip_member(const ByteFile& file, const ZipMember& member) {
  refuse_if_too_large(file, member);
  const auto broken = [&](std::string_view what) {
    return damaged(file.name(), member.offset,
                   fmt::format("the member '{}' of the zip archive {}", member.name, what));
  };
  return make_unnamed_file(fmt::format("{}:{}", file.name(), member.name), [&](const auto& append) {
    Inflater inflater;
    std::string packed, unpacked(1 << 18, '\0');
    int64_t taken = 0, given = 0;
    uLong crc = ::crc32(0, nullptr, 0);
    for (int state = Z_OK; state != Z_STREAM_END;) {
      if (inflater->avail_in == 0) {
        const int64_t length = std::min<int64_t>(1 << 18, member.stored_size - taken);
        if (length == 0) throw broken("ends too early");
        packed = file.read(member.offset + taken, length);
        taken += length;
        inflater->next_in = reinterpret_cast<Bytef*>(packed.data());
        inflater->avail_in = static_cast<uInt>(length);
      }
      inflater->next_out = reinterpret_cast<Bytef*>(unpacked.data());
      inflater->avail_out = static_cast<uInt>(unpacked.size());
      state = ::inflate(inflater.get(), Z_NO_FLUSH);
      if (state != Z_OK && state != Z_STREAM_END) throw broken("can't be unpacked");
      const size_t count = unpacked.size() - inflater->avail_out;
      given += static_cast<int64_t>(count);
      if (given > member.size) throw broken("is longer than it claims");
      crc = ::crc32(crc, reinterpret_cast<const Bytef*>(unpacked.data()), static_cast<uInt>(count));
      append(std::string_view(unpacked).substr(0, count));
    }
    if (given != member.size) throw broken("is shorter than it claims");
    if (crc != member.crc32) throw broken("does not match its checksum");
  });
}

std::shared_ptr<const ByteFile> open_zip_member(std::shared_ptr<const ByteFile> file,
                                                const ZipMember& member) {
  return std::make_shared<DeflatedMember>(std::move(file), member);
}

std::string read_zip_head(const ByteFile& file, const ZipMember& member, int64_t most) {
  std::string packed = file.read(member.offset, std::min(member.stored_size, 2 * most));
  std::string head(static_cast<size_t>(std::min(member.size, most)), '\0');
  Inflater inflater;
  inflater->next_in = reinterpret_cast<Bytef*>(packed.data());
  inflater->avail_in = static_cast<uInt>(packed.size());
  inflater->next_out = reinterpret_cast<Bytef*>(head.data());
  inflater->avail_out = static_cast<uInt>(head.size());
  ::inflate(inflater.get(), Z_SYNC_FLUSH);  // what is damaged shows when all of it is unpacked
  head.resize(head.size() - inflater->avail_out);
  return head;
}

}  // namespace renkei::data
