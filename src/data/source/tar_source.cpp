#include "data/source/tar_source.h"

#include <algorithm>
#include <map>

#include "base/checksum.h"
#include "data/image/decode.h"
#include "data/parallel.h"
#include "data/source/tar_shard.h"

namespace renkei::data {
namespace {

class TarSource : public Source {
 public:
  TarSource(std::vector<TarShard> shards, TarMembers members, std::vector<std::string> class_names)
      : shards_(std::move(shards)),
        members_(std::move(members)),
        class_names_(std::move(class_names)) {
    const bool by_directory = label_by_directory();
    for (TarShard& shard : shards_) {
      shard.first = count_;
      count_ += static_cast<int64_t>(shard.samples.size());
    }
    if (count_ > 0) find_fields(by_directory ? "directory in the archive" : "member cls");
  }

  std::string_view format() const override { return "tar"; }
  int64_t count() const override { return count_; }
  const std::vector<StoredField>& fields() const override { return fields_; }
  int64_t label(int64_t sample) const override { return at(sample).label; }
  int64_t records() const override {
    return static_cast<int64_t>((members_.input ? 1 : 0) + members_.others.size());
  }
  int64_t files() const override { return static_cast<int64_t>(shards_.size()); }
  std::vector<std::string> class_names() const override { return class_names_; }

  Location locate(int64_t sample, int64_t record) const override {
    const int64_t file = shard_of(sample);
    const TarShard& shard = shards_[static_cast<size_t>(file)];
    const auto place = static_cast<size_t>(sample - shard.first);
    if (is_input(record))
      return {
          .file = file, .offset = shard.samples[place].offset, .length = shard.samples[place].size};
    const auto other = static_cast<size_t>(record - (members_.input ? 1 : 0));
    const TarPiece& piece = shard.others[place * members_.others.size() + other];
    if (piece.size < 0)
      throw Error(ErrorCode::data,
                  fmt::format("{}: sample {} has no member .{}", shard.file->name(), sample,
                              members_.others[other]),
                  "give every sample the members of the first one");
    return {.file = file, .offset = piece.offset, .length = piece.size};
  }
  std::string file_name(int64_t file) const override {
    return shards_[static_cast<size_t>(file)].file->name();
  }
  std::shared_ptr<const ByteFile> file(int64_t file) const override {
    return shards_[static_cast<size_t>(file)].file;
  }

  std::string_view unwrap(int64_t sample, int64_t record, std::string_view stored) const override {
    const TarShard& shard = shards_[static_cast<size_t>(shard_of(sample))];
    if (is_input(record) && shard.checked && Checksum().add(stored).value() != at(sample).checksum)
      throw damaged(shard.file->name(), at(sample).offset,
                    fmt::format("sample {} does not match its checksum", sample));
    return stored;
  }

  // The numbers of an array, without the header of its member.
  std::string_view content(int64_t sample, const StoredField& field, std::string_view record,
                           std::string&) const override {
    if (!field.layout) return record;
    const NpyHeader header = parse_npy_header(record, describe(sample));
    if (ArrayLayout{header.type, header.shape} != *field.layout)
      throw Error(ErrorCode::data,
                  fmt::format("{}: the array '{}' has another type or shape than that of sample 0",
                              describe(sample), field.name),
                  "give all samples arrays of one type and shape");
    return record.substr(static_cast<size_t>(header.data_offset),
                         static_cast<size_t>(field.layout->bytes()));
  }

  std::optional<ImageExtent> extent(int64_t sample) const override {
    const IndexedSample& found = at(sample);
    if (found.width == 0) return {};
    return ImageExtent{static_cast<int>(found.width), static_cast<int>(found.height)};
  }

 private:
  bool is_input(int64_t record) const { return members_.input && record == 0; }

  int64_t shard_of(int64_t sample) const {
    check_sample(sample);
    // Empty shards share their first sample with the next one: take the last that starts here.
    const auto after = std::ranges::upper_bound(shards_, sample, {}, &TarShard::first);
    return after - shards_.begin() - 1;
  }

  const IndexedSample& at(int64_t sample) const {
    const TarShard& shard = shards_[static_cast<size_t>(shard_of(sample))];
    return shard.samples[static_cast<size_t>(sample - shard.first)];
  }

  // What the members of sample 0 hold.
  void find_fields(std::string_view label_origin) {
    for (int64_t record = 0; record < records(); ++record) {
      const Location where = locate(0, record);
      const ByteFile& file = *shards_[static_cast<size_t>(where.file)].file;
      const std::string head = file.read(where.offset, std::min<int64_t>(where.length, 12));
      std::optional<ArrayLayout> layout;
      if (looks_like_npy(head)) {
        const NpyHeader header = read_npy_header(file, where.offset, where.length);
        // Other samples of the same data set may be JPEGs; one that is no input is no picture.
        if (!is_input(record) || !is_raw_image(header))
          layout = ArrayLayout{header.type, header.shape};
      }
      const std::string name =
          is_input(record)
              ? std::string(kInput)
              : members_.others[static_cast<size_t>(record - (members_.input ? 1 : 0))];
      const std::string_view kind = looks_like_npy(head)    ? "npy"
                                    : looks_like_jpeg(head) ? "jpg"
                                                            : "of an image";
      fields_.push_back({.name = name,
                         .origin = fmt::format("member {}", is_input(record) ? kind : name),
                         .layout = layout,
                         .record = record});
    }
    if (label(0) == kNoLabel) return;
    const StoredField target{
        .name = std::string(kTarget), .origin = std::string(label_origin), .record = kNoRecord};
    fields_.insert(fields_.begin() + (members_.input ? 1 : 0), target);
  }

  bool label_by_directory() {
    std::map<std::string, int32_t> labels;
    size_t unlabelled = 0, samples = 0;
    for (const TarShard& shard : shards_) {
      unlabelled += shard.directories.size();
      samples += shard.samples.size();
      for (const std::string& name : shard.directories) labels[name] = 0;
    }
    // Without directories there are no labels at all: kNoLabel.
    if (unlabelled == 0 || (labels.size() == 1 && labels.begin()->first.empty())) return false;
    if (unlabelled != samples)
      throw Error(ErrorCode::data,
                  fmt::format("{}: some shards have .cls members and some have not",
                              shards_.front().file->name()),
                  "read them as two data sets");
    class_names_.clear();
    for (auto& [name, label] : labels) {
      label = static_cast<int32_t>(class_names_.size());
      class_names_.push_back(name.substr(name.rfind('/') + 1));
    }
    for (TarShard& shard : shards_) {
      for (size_t i = 0; i < shard.samples.size(); ++i)
        shard.samples[i].label = labels[shard.directories[i]];
      shard.directories = {};
    }
    return true;
  }

  std::vector<TarShard> shards_;
  TarMembers members_;
  std::vector<std::string> class_names_;
  std::vector<StoredField> fields_;
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Source> open_tar_source(const Storage& storage, const TarSourceOptions& options) {
  std::vector<TarShard> shards(options.shards.size());
  TarMembers members;
  size_t opened = 0;  // up to the first sample, which decides what all others have
  while (opened < shards.size() && (opened == 0 || shards[opened - 1].samples.empty())) {
    OpenedShard first = open_tar_shard(storage, options.shards[opened], nullptr);
    shards[opened++] = std::move(first.shard);
    members = std::move(first.members);
  }
  parallel_for(static_cast<int64_t>(shards.size() - opened), options.threads, [&](int64_t i) {
    const size_t place = opened + static_cast<size_t>(i);
    shards[place] = open_tar_shard(storage, options.shards[place], &members).shard;
  });
  auto source =
      std::make_unique<TarSource>(std::move(shards), std::move(members), options.class_names);
  if (source->count() == 0)
    throw Error(ErrorCode::data,
                fmt::format("{} holds no samples",
                            options.shards.empty() ? "the data set" : options.shards.front()),
                "a sample is a member NAME.jpg, .jpeg, .png or .npy, with NAME.cls beside it");
  return source;
}

}  // namespace renkei::data
