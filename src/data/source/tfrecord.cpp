#include "data/source/tfrecord.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "data/parallel.h"
#include "data/storage/sequential_reader.h"

namespace renkei::data {
namespace {

constexpr int64_t kBefore = 12, kAfter = 4;

template <typename T>
T get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// Fields of a protocol buffer, one after the other. Only what a tf.train.Example uses: numbers and
// pieces with a length. Anything else ends the walk.
class ProtoWalk {
 public:
  explicit ProtoWalk(std::string_view bytes) : rest_(bytes) {}

  // The next field of wire type 2, or 0 with its number in `number`.
  bool next() {
    uint64_t tag = 0, value = 0;
    if (rest_.empty() || !varint(tag) || !varint(value)) return false;
    field = static_cast<int>(tag >> 3 & 0xFFFF);
    number = value;
    piece = {};
    if ((tag & 7) == 0) return true;
    if ((tag & 7) != 2 || value > rest_.size()) return false;
    piece = rest_.substr(0, value);
    rest_.remove_prefix(value);
    return true;
  }

  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool empty() const { return rest_.empty(); }

  int field = 0;
  uint64_t number = 0;
  std::string_view piece;

 private:
  std::string_view rest_;
};

bool is_label(std::string_view name) {
  return name == "image/class/label" || name == "label";
}

// Feature { Int64List int64_list = 3 { repeated int64 value = 1, packed or not } }
std::optional<int64_t> integer_of(std::string_view feature) {
  for (ProtoWalk list(feature); list.next();)
    if (list.field == 3)
      for (ProtoWalk values(list.piece); values.next();) {
        if (values.field != 1) continue;
        if (values.piece.empty()) return static_cast<int64_t>(values.number);
        uint64_t first = 0;
        if (ProtoWalk(values.piece).varint(first)) return static_cast<int64_t>(first);
      }
  return {};
}

// A varint and how many bytes it takes, from a file.
std::optional<int64_t> take_varint(SequentialReader& reader, int64_t end) {
  uint64_t value = 0;
  for (int shift = 0; shift < 63 && reader.offset() < end; shift += 7) {
    const auto byte = static_cast<unsigned char>(reader.take(1).front());
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return static_cast<int64_t>(value & INT64_MAX);
  }
  return {};
}

// Example { Features features = 1 { repeated Entry { string key = 1; Feature value = 2 } = 1 } }.
// Walks the entries in the file and reads only those that may be the label, as an image has a
// hundred thousand bytes and a label three.
std::optional<int64_t> find_label(SequentialReader& reader, int64_t end) {
  constexpr int64_t kLargestLabelEntry = 256;
  if (reader.offset() >= end || reader.take(1) != "\x0a" || !take_varint(reader, end)) return {};
  while (reader.offset() < end) {
    if (reader.take(1) != "\x0a") return {};
    const auto length = take_varint(reader, end);
    if (!length || *length > end - reader.offset()) return {};
    if (*length <= kLargestLabelEntry) {
      const std::string entry(reader.take(*length));
      std::string_view name, feature;
      for (ProtoWalk walk(entry); walk.next();) (walk.field == 1 ? name : feature) = walk.piece;
      if (is_label(name)) return integer_of(feature);
    } else {
      reader.skip(*length);
    }
  }
  return {};
}

class TfRecordSource : public Source {
 public:
  TfRecordSource(std::vector<std::shared_ptr<const ByteFile>> files,
                 const std::vector<std::vector<TfRecord>>& records)
      : files_(std::move(files)) {
    for (size_t file = 0; file < records.size(); ++file)
      for (const TfRecord& record : records[file]) records_.push_back({file, record});
  }

  std::string_view format() const override { return "TFRecord"; }
  int64_t count() const override { return static_cast<int64_t>(records_.size()); }
  int64_t label(int64_t sample) const override { return at(sample).record.label; }
  int64_t files() const override { return static_cast<int64_t>(files_.size()); }
  std::string file_name(int64_t file) const override {
    return files_[static_cast<size_t>(file)]->name();
  }
  std::shared_ptr<const ByteFile> file(int64_t file) const override {
    return files_[static_cast<size_t>(file)];
  }
  Location locate(int64_t sample) const override {
    const Placed& found = at(sample);
    return {.file = static_cast<int64_t>(found.file),
            .offset = found.record.offset,
            .length = found.record.length + kAfter};
  }

  std::string_view unwrap(int64_t sample, std::string_view stored) const override {
    const Location where = locate(sample);
    if (static_cast<int64_t>(stored.size()) != where.length)
      throw Error(ErrorCode::bug, fmt::format("sample {} has other bytes than its place", sample));
    const std::string_view payload = stored.substr(0, stored.size() - kAfter);
    if (get<uint32_t>(stored, payload.size()) != masked_crc32c(payload))
      throw damaged(file_name(where.file), where.offset,
                    fmt::format("sample {} does not match its checksum", sample));
    const auto image = find_example_image(payload);
    if (!image)
      throw damaged(file_name(where.file), where.offset,
                    fmt::format("sample {} has no feature 'image/encoded'", sample));
    return *image;
  }

 private:
  struct Placed {
    size_t file;
    TfRecord record;
  };

  const Placed& at(int64_t sample) const {
    check_sample(sample);
    return records_[static_cast<size_t>(sample)];
  }

  std::vector<std::shared_ptr<const ByteFile>> files_;
  std::vector<Placed> records_;
};

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

bool looks_like_tfrecord(std::string_view first_12_bytes) {
  return first_12_bytes.size() >= 12 &&
         get<uint32_t>(first_12_bytes, 8) == masked_crc32c(first_12_bytes.substr(0, 8));
}

std::optional<std::string_view> find_example_image(std::string_view payload) {
  for (ProtoWalk example(payload); example.next();) {
    if (example.field != 1) continue;
    for (ProtoWalk features(example.piece); features.next();) {
      std::string_view name, feature;
      for (ProtoWalk entry(features.piece); entry.next();)
        (entry.field == 1 ? name : feature) = entry.piece;
      if (name != "image/encoded" && name != "image") continue;
      for (ProtoWalk list(feature); list.next();)
        if (list.field == 1)  // BytesList bytes_list = 1 { repeated bytes value = 1 }
          for (ProtoWalk values(list.piece); values.next();)
            if (values.field == 1) return values.piece;
    }
  }
  return {};
}

std::vector<TfRecord> scan_tfrecords(const ByteFile& file) {
  std::vector<TfRecord> records;
  SequentialReader reader(file);
  while (reader.left() > 0) {
    const int64_t at = reader.offset();
    if (reader.left() < kBefore + kAfter)
      throw damaged(file.name(), at, fmt::format("record {} is cut off", records.size()));
    const std::string head(reader.take(kBefore));
    if (!looks_like_tfrecord(head))
      throw damaged(
          file.name(), at,
          fmt::format("the length of record {} does not match its checksum", records.size()));
    const auto length = get<uint64_t>(head, 0);
    if (length > static_cast<uint64_t>(reader.left() - kAfter))
      throw damaged(file.name(), at, fmt::format("record {} is cut off", records.size()));
    TfRecord record{.offset = reader.offset(), .length = static_cast<int64_t>(length)};
    const int64_t end = record.offset + record.length;
    const auto label = find_label(reader, end);
    if (label && (*label < 0 || *label > INT32_MAX))
      throw damaged(file.name(), at,
                    fmt::format("the label of record {} is {}", records.size(), *label));
    record.label = label.value_or(kNoLabel);
    records.push_back(record);
    reader.seek(end + kAfter);
  }
  return records;
}

std::unique_ptr<Source> open_tfrecord_source(const Storage& storage,
                                             const TfRecordSourceOptions& options) {
  std::vector<std::shared_ptr<const ByteFile>> files(options.files.size());
  std::vector<std::vector<TfRecord>> records(files.size());
  parallel_for(static_cast<int64_t>(files.size()), options.threads, [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    files[place] = storage.open(options.files[place]);
    records[place] = scan_tfrecords(*files[place]);
  });
  auto source = std::make_unique<TfRecordSource>(std::move(files), records);
  if (source->count() == 0)
    throw Error(ErrorCode::data, fmt::format("{} has no records", options.files.front()),
                "check that the conversion to TFRecord finished");
  return source;
}

}  // namespace renkei::data
