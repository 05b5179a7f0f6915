#include "data/source/tar_source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/checksum.h"
#include "data/parallel.h"
#include "data/source/dali_index.h"
#include "data/source/shard_index.h"

namespace renkei::data {
namespace {

struct Shard {
  std::shared_ptr<const ByteFile> file;
  std::vector<IndexedSample> samples;
  std::vector<std::string> directories;  // of the samples, while labels are still unknown
  bool checked = false;                  // the samples have checksums
  int64_t first = 0;                     // number of its first sample
};

std::string replace_extension(std::string_view path, std::string_view extension) {
  return fmt::format("{}{}", path.substr(0, path.rfind('.')), extension);
}

// DALI cuts at the first dot of the file's name, so "a.b.tar" has the index "a.idx".
std::string dali_index_path(std::string_view path) {
  const size_t base = path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1;
  return fmt::format("{}.idx", path.substr(0, path.find('.', base)));
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return result;
}

bool is_content(std::string_view extension) {
  constexpr std::array<std::string_view, 4> kContent{"jpg", "jpeg", "png", "npy"};
  return std::ranges::count(kContent, lower(extension)) > 0;
}

int32_t read_label(const ByteFile& file, const TarComponent& part) {
  const std::string text = part.size <= 32 ? file.read(part.offset, part.size) : "";
  int32_t label = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  const auto used = static_cast<size_t>(end - text.data());
  if (error != std::errc{} || label < 0 ||
      text.find_first_not_of(" \r\n", used) != std::string::npos)
    throw damaged(file.name(), part.offset,
                  fmt::format("the label '{}' is not a number", part.name));
  return label;
}

std::string directory_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(name.substr(0, slash));
}

void add_sample(Shard& shard, const TarSample& components) {
  IndexedSample sample;
  const TarComponent* content = nullptr;
  for (const TarComponent& part : components) {
    if (is_content(part.extension)) {
      if (content)
        throw damaged(shard.file->name(), part.offset,
                      fmt::format("the sample of '{}' has two images", part.name));
      content = &part;
    } else if (lower(part.extension) == "cls") {
      sample.label = read_label(*shard.file, part);
    }
  }
  if (!content) return;  // "__meta__.json" and its like
  sample.offset = content->offset;
  sample.size = content->size;
  shard.samples.push_back(sample);
  if (sample.label < 0) shard.directories.push_back(directory_of(content->name));
}

Shard open_shard(const Storage& storage, const std::string& path) {
  Shard shard{.file = storage.open(path)};
  const std::string own = replace_extension(path, ".index"), dali = dali_index_path(path);
  if (storage.is_file(own)) {
    const auto index = storage.open(own);
    shard.samples = parse_shard_index(index->read(0, index->size()), own, shard.file->size());
    shard.checked = true;
    return shard;
  }
  std::vector<TarSample> samples;
  if (storage.is_file(dali)) {
    const auto index = storage.open(dali);
    samples = parse_dali_index(index->read(0, index->size()), dali, shard.file->size());
  } else {
    samples = scan_tar(*shard.file);
  }
  for (const TarSample& components : samples) add_sample(shard, components);
  if (!shard.directories.empty() && shard.directories.size() != shard.samples.size())
    throw Error(ErrorCode::data,
                fmt::format("{}: {} of {} samples have no .cls member", path,
                            shard.directories.size(), shard.samples.size()),
                "give every sample a label, or none, with the class as its directory");
  return shard;
}

class TarSource : public Source {
 public:
  TarSource(std::vector<Shard> shards, std::vector<std::string> class_names)
      : shards_(std::move(shards)), class_names_(std::move(class_names)) {
    label_by_directory();
    for (Shard& shard : shards_) {
      shard.first = count_;
      count_ += static_cast<int64_t>(shard.samples.size());
    }
  }

  std::string_view format() const override { return "tar"; }
  int64_t count() const override { return count_; }
  int64_t label(int64_t sample) const override { return at(sample).label; }
  int64_t files() const override { return static_cast<int64_t>(shards_.size()); }
  std::vector<std::string> class_names() const override { return class_names_; }

  Location locate(int64_t sample) const override {
    const IndexedSample& found = at(sample);
    return {.file = shard_of(sample), .offset = found.offset, .length = found.size};
  }
  std::string file_name(int64_t file) const override {
    return shards_[static_cast<size_t>(file)].file->name();
  }
  std::shared_ptr<const ByteFile> file(int64_t file) const override {
    return shards_[static_cast<size_t>(file)].file;
  }

  std::string_view unwrap(int64_t sample, std::string_view stored) const override {
    const Shard& shard = shards_[static_cast<size_t>(shard_of(sample))];
    if (shard.checked && Checksum().add(stored).value() != at(sample).checksum)
      throw damaged(shard.file->name(), at(sample).offset,
                    fmt::format("sample {} does not match its checksum", sample));
    return stored;
  }

  std::optional<ImageExtent> extent(int64_t sample) const override {
    const IndexedSample& found = at(sample);
    if (found.width == 0) return {};
    return ImageExtent{static_cast<int>(found.width), static_cast<int>(found.height)};
  }

 private:
  int64_t shard_of(int64_t sample) const {
    check_sample(sample);
    // Empty shards share their first sample with the next one: take the last that starts here.
    const auto after = std::ranges::upper_bound(shards_, sample, {}, &Shard::first);
    return after - shards_.begin() - 1;
  }

  const IndexedSample& at(int64_t sample) const {
    const Shard& shard = shards_[static_cast<size_t>(shard_of(sample))];
    return shard.samples[static_cast<size_t>(sample - shard.first)];
  }

  void label_by_directory() {
    std::map<std::string, int32_t> labels;
    size_t unlabelled = 0, samples = 0;
    for (const Shard& shard : shards_) {
      unlabelled += shard.directories.size();
      samples += shard.samples.size();
      for (const std::string& name : shard.directories) labels[name] = 0;
    }
    // Without directories there are no labels at all: kNoLabel.
    if (unlabelled == 0 || (labels.size() == 1 && labels.begin()->first.empty())) return;
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
    for (Shard& shard : shards_) {
      for (size_t i = 0; i < shard.samples.size(); ++i)
        shard.samples[i].label = labels[shard.directories[i]];
      shard.directories = {};
    }
  }

  std::vector<Shard> shards_;
  std::vector<std::string> class_names_;
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Source> open_tar_source(const Storage& storage, const TarSourceOptions& options) {
  std::vector<Shard> shards(options.shards.size());
  parallel_for(static_cast<int64_t>(shards.size()), options.threads, [&](int64_t i) {
    shards[static_cast<size_t>(i)] = open_shard(storage, options.shards[static_cast<size_t>(i)]);
  });
  auto source = std::make_unique<TarSource>(std::move(shards), options.class_names);
  if (source->count() == 0)
    throw Error(ErrorCode::data,
                fmt::format("{} holds no samples",
                            options.shards.empty() ? "the data set" : options.shards.front()),
                "a sample is a member NAME.jpg, .jpeg, .png or .npy, with NAME.cls beside it");
  return source;
}

}  // namespace renkei::data
