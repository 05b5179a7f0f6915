#include "data/source/open_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/source/array_source.h"
#include "data/source/folder_source.h"
#include "data/source/hdf5_source.h"
#include "data/source/npy.h"
#include "data/source/tar_source.h"
#include "data/source/tfrecord.h"

namespace renkei::data {
namespace {

enum class Format { tar, npy, npz, hdf5, tfrecord, unknown };

Format detect(const ByteFile& file) {
  const std::string head = file.read(0, std::min<int64_t>(file.size(), 512));
  if (looks_like_npy(head)) return Format::npy;
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) return Format::npz;
  if (head.starts_with("\x89HDF\r\n\x1a\n")) return Format::hdf5;
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return Format::tar;
  if (looks_like_tfrecord(head)) return Format::tfrecord;
  if (file.name().ends_with(".tar")) return Format::tar;  // version 7 has no mark
  return Format::unknown;
}

bool is_held_out(std::string_view name) {
  return name.starts_with("test") || name.starts_with("val");
}

// From dataset.json, which `renkei data pack` writes.
std::vector<std::string> read_class_names(const Storage& storage, const std::string& directory) {
  const std::string path = join_path(directory, "dataset.json");
  if (!storage.is_file(path)) return {};
  const auto file = storage.open(path);
  const auto description =
      nlohmann::json::parse(file->read(0, file->size()), nullptr, /*allow_exceptions=*/false);
  if (!description.is_object())
    throw damaged(path, 0, "the description of the data set is not JSON");
  std::vector<std::string> names;
  const auto classes = description.find("classes");
  if (classes == description.end() || !classes->is_array()) return {};
  for (const auto& name : *classes)
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

std::unique_ptr<Source> open_file(const Storage& storage, const OpenOptions& options) {
  const ArraySourceOptions arrays{options.path, options.part, options.input, options.label};
  const Format format = detect(*storage.open(options.path));
  if (format == Format::npy) return open_npy_source(storage, arrays);
  if (format == Format::npz) return open_npz_source(storage, arrays);
  if (format == Format::hdf5) return open_hdf5_source(storage, arrays);
  if (format == Format::unknown)
    throw Error(ErrorCode::data,
                fmt::format("{} is neither a tar, npy, npz, HDF5 nor TFRecord file", options.path),
                "docs/data.md lists what can be read");
  if (options.part == Part::held_out) return nullptr;
  if (format == Format::tfrecord)
    return open_tfrecord_source(storage, {.files = {options.path}, .threads = options.threads});
  return open_tar_source(storage, {.shards = {options.path}, .threads = options.threads});
}

std::unique_ptr<Source> open_directory(std::shared_ptr<const Storage> storage,
                                       OpenOptions options) {
  const std::vector<StorageEntry> entries = storage->list(options.path);
  const auto has_directory = [&](std::string_view name) {
    return std::ranges::any_of(
        entries, [&](const StorageEntry& entry) { return entry.directory && entry.name == name; });
  };
  const bool held_out = options.part == Part::held_out;
  if (has_directory("train")) {
    for (const char* name : {"test", "val", "validation"})
      if (held_out && has_directory(name)) {
        options.path = join_path(options.path, name);
        options.part = Part::train;
        return open_source(std::move(storage), options);
      }
    if (held_out) return nullptr;
    options.path = join_path(options.path, "train");
    return open_source(std::move(storage), options);
  }

  std::vector<std::string> shards, records;
  const auto is_shard = [](const StorageEntry& entry) { return entry.name.ends_with(".tar"); };
  const auto is_record = [](const StorageEntry& entry) {
    return entry.name.find("tfrecord") != std::string::npos ||
           entry.name.find("-of-") != std::string::npos;
  };
  std::vector<StorageEntry> archives;
  for (const StorageEntry& entry : entries)
    if (!entry.directory && (is_shard(entry) || is_record(entry))) archives.push_back(entry);
  // In a folder of test shards only, the names tell nothing.
  const bool divided = !std::ranges::all_of(archives, is_held_out, &StorageEntry::name);
  for (const StorageEntry& entry : archives) {
    if ((divided && is_held_out(entry.name)) != held_out) continue;
    (is_shard(entry) ? shards : records).push_back(join_path(options.path, entry.name));
  }
  if (!shards.empty())
    return open_tar_source(*storage, {.shards = std::move(shards),
                                      .class_names = read_class_names(*storage, options.path),
                                      .threads = options.threads});
  if (!records.empty())
    return open_tfrecord_source(*storage,
                                {.files = std::move(records), .threads = options.threads});
  if (std::ranges::any_of(entries, [](const StorageEntry& entry) {
        return !entry.directory && entry.name.ends_with(".npy");
      }))
    return open_npy_folder(*storage, {options.path, options.part, options.input, options.label});
  if (held_out) return nullptr;
  return open_folder_source(std::move(storage), {.root = options.path, .threads = options.threads});
}

}  // namespace

std::unique_ptr<Source> open_source(std::shared_ptr<const Storage> storage,
                                    const OpenOptions& options) {
  if (storage->is_directory(options.path)) return open_directory(std::move(storage), options);
  if (storage->is_file(options.path)) return open_file(*storage, options);
  throw Error(ErrorCode::data, fmt::format("there is no data set at '{}'", options.path),
              "check the path, or make one: renkei data synth DIR");
}

}  // namespace renkei::data
