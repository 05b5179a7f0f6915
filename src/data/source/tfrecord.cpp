#include "data/source/tfrecord.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "data/image/jpeg.h"
#include "data/image/png.h"
#include "data/parallel.h"
#include "data/source/example.h"
#include "data/source/proto_walk.h"
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

bool is_label(std::string_view name) {
  return name == "image/class/label" || name == "label";
}

std::optional<int64_t> integer_of(std::string_view message) {
  const auto feature = parse_feature("", message);
  std::string numbers;
  if (!feature || feature->kind != Feature::Kind::integers || append_numbers(*feature, numbers) < 1)
    return {};
  return get<int64_t>(numbers, 0);
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

bool is_image(std::string_view name) {
  return name == "image/encoded" || name == "image";
}

class TfRecordSource : public Source {
 public:
  TfRecordSource(std::vector<std::shared_ptr<const ByteFile>> files,
                 const std::vector<std::vector<TfRecord>>& records)
      : files_(std::move(files)) {
    for (size_t file = 0; file < records.size(); ++file)
      for (const TfRecord& record : records[file]) records_.push_back({file, record});
    if (!records_.empty()) find_fields();
  }

  std::string_view format() const override { return "TFRecord"; }
  int64_t count() const override { return static_cast<int64_t>(records_.size()); }
  const std::vector<StoredField>& fields() const override { return fields_; }
  int64_t label(int64_t sample) const override { return at(sample).record.label; }
  int64_t files() const override { return static_cast<int64_t>(files_.size()); }
  std::string file_name(int64_t file) const override {
    return files_[static_cast<size_t>(file)]->name();
  }
  std::shared_ptr<const ByteFile> file(int64_t file) const override {
    return files_[static_cast<size_t>(file)];
  }
  Location locate(int64_t sample, int64_t) const override {
    const Placed& found = at(sample);
    return {.file = static_cast<int64_t>(found.file),
            .offset = found.record.offset,
            .length = found.record.length + kAfter};
  }

  std::string_view unwrap(int64_t sample, int64_t record, std::string_view stored) const override {
    const Location where = locate(sample, record);
    if (static_cast<int64_t>(stored.size()) != where.length)
      throw Error(ErrorCode::bug, fmt::format("sample {} has other bytes than its place", sample));
    const std::string_view payload = stored.substr(0, stored.size() - kAfter);
    if (get<uint32_t>(stored, payload.size()) != masked_crc32c(payload))
      throw damaged(file_name(where.file), where.offset,
                    fmt::format("sample {} does not match its checksum", sample));
    return payload;
  }

  std::string_view content(int64_t sample, const StoredField& field, std::string_view record,
                           std::string& scratch) const override {
    const std::string& name = field.stored_as;
    const auto feature = find_feature(record, name);
    if (!feature) throw wrong(sample, fmt::format("has no feature '{}'", name));
    if (!field.layout) return first_bytes(*feature);
    scratch.clear();
    if (feature->kind == Feature::Kind::bytes || kind_of(field) != feature->kind ||
        append_numbers(*feature, scratch) != field.layout->elements())
      throw wrong(sample, fmt::format("has other numbers in '{}' than the first one", name));
    return scratch;
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

  static Feature::Kind kind_of(const StoredField& field) {
    return field.layout->type.kind == ElementKind::floating ? Feature::Kind::floats
                                                            : Feature::Kind::integers;
  }

  Error wrong(int64_t sample, std::string_view what) const {
    const Location where = locate(sample, 0);
    return damaged(file_name(where.file), where.offset, fmt::format("sample {} {}", sample, what));
  }

  // What the first record that is whole holds.
  void find_fields() {
    constexpr int64_t kTries = 16;
    for (int64_t sample = 0; fields_.empty() && sample < std::min(count(), kTries); ++sample) {
      std::string payload;
      try {
        payload = read(sample, 0);
      } catch (const Error& error) {
        if (error.code != ErrorCode::data) throw;
        continue;
      }
      for (const Feature& feature : parse_example(payload)) add_feature(feature, sample);
    }
    if (fields_.empty()) add(kInput, {}, "image/encoded");  // errors will say that it is not there
    const auto rank = [](const StoredField& field) {
      return field.name == kInput ? 0 : field.name == kTarget ? 1 : 2;
    };
    std::ranges::stable_sort(fields_, {}, rank);
  }

  void add_feature(const Feature& feature, int64_t sample) {
    const std::string_view name = feature.name;
    if (feature.kind == Feature::Kind::bytes) {
      const std::string_view bytes = first_bytes(feature);
      if (is_image(name))
        add(kInput, {}, name);
      else if (looks_like_jpeg(bytes) || looks_like_png(bytes))
        add(name, {}, name);
      return;  // text is for people
    }
    if (is_label(name) && at(sample).record.label != kNoLabel)
      return add(kTarget, {}, name, kNoRecord);
    std::string numbers;
    const int64_t count = append_numbers(feature, numbers);
    if (count == 0) return;
    const bool floats = feature.kind == Feature::Kind::floats;
    add(is_label(name) ? kTarget : name,
        ArrayLayout{floats ? ElementType{ElementKind::floating, 4, false}
                           : ElementType{ElementKind::signed_integer, 8, false},
                    count == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{count}},
        name);
  }

  void add(std::string_view field, std::optional<ArrayLayout> layout, std::string_view feature,
           int64_t record = 0) {
    if (std::ranges::count(fields_, field, &StoredField::name) > 0) return;
    fields_.push_back({.name = std::string(field),
                       .origin = fmt::format("feature {}", feature),
                       .layout = std::move(layout),
                       .record = record,
                       .stored_as = std::string(feature)});
  }

  std::vector<std::shared_ptr<const ByteFile>> files_;
  std::vector<Placed> records_;
  std::vector<StoredField> fields_;
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
