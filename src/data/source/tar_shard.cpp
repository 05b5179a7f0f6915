#include "data/source/tar_shard.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "data/source/dali_index.h"

namespace renkei::data {
namespace {

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

bool is_image(std::string_view extension) {
  constexpr std::array<std::string_view, 3> kImages{"jpg", "jpeg", "png"};
  return std::ranges::count(kImages, extension) > 0;
}

bool is_readable(std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);  // npos + 1 is 0
  return is_image(last) || last == "npy";
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

// The members of one sample, sorted out.
struct Sorted {
  const TarComponent* input = nullptr;
  const TarComponent* label = nullptr;
  std::vector<const TarComponent*> others = {};
};

Sorted sort_out(const TarSample& components, const std::string& file) {
  Sorted sorted;
  for (const TarComponent& part : components) {
    const std::string extension = lower(part.extension);
    if (extension == "cls") {
      sorted.label = &part;
    } else if (is_image(extension)) {
      if (sorted.input)
        throw damaged(file, part.offset,
                      fmt::format("the sample of '{}' has two images", part.name));
      sorted.input = &part;
    } else if (is_readable(extension)) {
      sorted.others.push_back(&part);
    }
  }
  const auto array = std::ranges::find(
      sorted.others, "npy", [](const TarComponent* part) { return lower(part->extension); });
  if (!sorted.input && array != sorted.others.end()) {
    sorted.input = *array;
    sorted.others.erase(array);
  }
  return sorted;
}

TarMembers members_of(const Sorted& sorted) {
  TarMembers members{.input = sorted.input != nullptr};
  for (const TarComponent* part : sorted.others) members.others.push_back(lower(part->extension));
  return members;
}

class ShardBuilder {
 public:
  ShardBuilder(TarShard& shard, const TarMembers* members) : shard_(shard) {
    if (members) members_ = *members;
    is_decided_ = members != nullptr;
  }

  void add(const TarSample& components) {
    const Sorted sorted = sort_out(components, shard_.file->name());
    if (!sorted.input && sorted.others.empty()) return;  // "__meta__.json" and its like
    if (!is_decided_) members_ = members_of(sorted);
    is_decided_ = true;
    if (members_.input && !sorted.input) return;

    IndexedSample sample;
    if (sorted.label) sample.label = read_label(*shard_.file, *sorted.label);
    if (members_.input) {
      sample.offset = sorted.input->offset;
      sample.size = sorted.input->size;
    }
    if (sample.label < 0) {
      const TarComponent& named = sorted.input ? *sorted.input : *sorted.others.front();
      shard_.directories.push_back(directory_of(named.name));
    }
    shard_.samples.push_back(sample);
    for (const std::string& extension : members_.others) {
      const auto found = std::ranges::find(
          components, extension, [](const TarComponent& part) { return lower(part.extension); });
      shard_.others.push_back(found == components.end() ? TarPiece{}
                                                        : TarPiece{found->offset, found->size});
    }
  }

  TarMembers members() const { return members_; }

 private:
  TarShard& shard_;
  TarMembers members_;
  bool is_decided_ = false;
};

}  // namespace

OpenedShard open_tar_shard(const Storage& storage, const std::string& path,
                           const TarMembers* members) {
  OpenedShard opened{.shard = {.file = storage.open(path)}};
  TarShard& shard = opened.shard;
  const std::string own = replace_extension(path, ".index"), dali = dali_index_path(path);
  if (storage.is_file(own)) {
    const auto index = storage.open(own);
    shard.samples = parse_shard_index(index->read(0, index->size()), own, shard.file->size());
    shard.checked = true;
    opened.members = members ? *members : TarMembers{.input = true};
    shard.others.resize(shard.samples.size() * opened.members.others.size());
    return opened;
  }
  std::vector<TarSample> samples;
  if (storage.is_file(dali)) {
    const auto index = storage.open(dali);
    samples = parse_dali_index(index->read(0, index->size()), dali, shard.file->size());
  } else {
    samples = scan_tar(*shard.file);
  }
  ShardBuilder builder(shard, members);
  for (const TarSample& components : samples) builder.add(components);
  opened.members = builder.members();
  if (!shard.directories.empty() && shard.directories.size() != shard.samples.size())
    throw Error(ErrorCode::data,
                fmt::format("{}: {} of {} samples have no .cls member", path,
                            shard.directories.size(), shard.samples.size()),
                "give every sample a label, or none, with the class as its directory");
  return opened;
}

}  // namespace renkei::data
