#include "data/source/shard_index.h"

#include <cstring>

#include "base/checksum.h"

namespace renkei::data {
namespace {

constexpr std::string_view kMagic = "RENKEIx1";
constexpr size_t kHeader = 24, kRecord = 40, kTrailer = 8;

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

Error wrong(std::string_view file, std::string_view what) {
  return Error(ErrorCode::data, fmt::format("{}: the index {}", file, what),
               "remove it (the archive is then scanned), or pack the data set again");
}

}  // namespace

std::string format_shard_index(const std::vector<IndexedSample>& samples, int64_t tar_bytes) {
  std::string bytes(kMagic);
  append<uint64_t>(bytes, samples.size());
  append<int64_t>(bytes, tar_bytes);
  for (const IndexedSample& sample : samples) {
    append(bytes, sample.offset);
    append(bytes, sample.size);
    append(bytes, sample.checksum);
    append(bytes, sample.label);
    append(bytes, sample.width);
    append(bytes, sample.height);
    append<uint32_t>(bytes, 0);
  }
  append(bytes, Checksum().add(bytes).value());
  return bytes;
}

std::vector<IndexedSample> parse_shard_index(std::string_view bytes, std::string_view file,
                                             int64_t tar_bytes) {
  if (bytes.size() < kHeader + kTrailer || !bytes.starts_with(kMagic))
    throw wrong(file, "is not one of this version");
  std::string_view trailer = bytes.substr(bytes.size() - kTrailer);
  if (take<uint64_t>(trailer) != Checksum().add(bytes.substr(0, bytes.size() - kTrailer)).value())
    throw wrong(file, "has a wrong checksum");
  std::string_view rest = bytes.substr(kMagic.size());
  const auto count = take<uint64_t>(rest);
  const auto archive = take<int64_t>(rest);
  if (count != (bytes.size() - kHeader - kTrailer) / kRecord ||
      bytes.size() != kHeader + kTrailer + count * kRecord)
    throw wrong(file, "has another size than it claims");
  if (archive != tar_bytes)
    throw wrong(file, fmt::format("is of an archive of {} bytes, not of {}", archive, tar_bytes));
  std::vector<IndexedSample> samples(count);
  for (IndexedSample& sample : samples) {
    sample.offset = take<int64_t>(rest);
    sample.size = take<int64_t>(rest);
    sample.checksum = take<uint64_t>(rest);
    sample.label = take<int32_t>(rest);
    sample.width = take<uint32_t>(rest);
    sample.height = take<uint32_t>(rest);
    take<uint32_t>(rest);
    if (sample.offset < 0 || sample.size < 0 || sample.offset > tar_bytes ||
        sample.size > tar_bytes - sample.offset)
      throw wrong(file, fmt::format("puts {} bytes at offset {} of an archive of {} bytes",
                                    sample.size, sample.offset, tar_bytes));
  }
  return samples;
}

}  // namespace renkei::data
