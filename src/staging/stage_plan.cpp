#include "staging/stage_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/checksum.h"

namespace renkei::staging {
namespace {

// A key of object storage may be any text; a path must stay below its directory.
bool is_safe(std::string_view name) {
  return name != "." && name != ".." && name.find('\0') == std::string_view::npos &&
         name.find('/') == std::string_view::npos;
}

}  // namespace

StagePlan StagePlan::of(const data::Storage& storage, const std::string& source,
                        int64_t block_bytes) {
  StagePlan plan;
  plan.source_ = source;
  while (plan.source_.size() > 1 && plan.source_.ends_with('/')) plan.source_.pop_back();
  plan.block_bytes_ = block_bytes;
  if (storage.is_directory(source)) {
    plan.add_directory(storage, plan.source_, "");
  } else if (storage.is_file(source)) {
    plan.single_file_ = true;
    plan.add(plan.source_.substr(plan.source_.rfind('/') + 1), storage.open(source)->size());
  } else {
    throw Error(ErrorCode::data, fmt::format("there is no data set at '{}'", source),
                "check the path");
  }
  if (plan.files_.empty())
    throw Error(ErrorCode::data, fmt::format("there are no files in '{}'", source),
                "check the path");
  const std::string description = data::join_path(plan.source_, "dataset.json");
  const bool packed = !plan.single_file_ && storage.is_file(description);
  plan.identify(packed ? storage.read(description) : "");
  return plan;
}

void StagePlan::add_directory(const data::Storage& storage, const std::string& directory,
                              const std::string& prefix) {
  for (const data::StorageEntry& entry : storage.list(directory)) {
    if (!is_safe(entry.name))
      throw Error(ErrorCode::data,
                  fmt::format("{}: '{}' can't be the name of a file", directory, entry.name),
                  "rename it at the source");
    if (entry.directory)
      add_directory(storage, data::join_path(directory, entry.name), prefix + entry.name + "/");
    else
      add(prefix + entry.name, entry.size);
  }
}

void StagePlan::add(std::string name, int64_t size) {
  files_.push_back({std::move(name), size, bytes()});
}

void StagePlan::identify(std::string_view description) {
  Checksum checksum;
  checksum.add(fmt::format("{} {}\n", block_bytes_, description));
  for (const StagedFile& file : files_) checksum.add(fmt::format("{} {}\n", file.size, file.name));
  identity_ = checksum.hex();
}

std::string StagePlan::text() const {
  nlohmann::ordered_json files = nlohmann::json::array();
  for (const StagedFile& file : files_) files.push_back({file.name, file.size});
  return nlohmann::ordered_json{{"source", source_},
                                {"single_file", single_file_},
                                {"block_bytes", block_bytes_},
                                {"identity", identity_},
                                {"files", std::move(files)}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

StagePlan StagePlan::parse(std::string_view text) {
  const auto json = nlohmann::json::parse(text);
  StagePlan plan;
  plan.source_ = json.at("source");
  plan.single_file_ = json.at("single_file");
  plan.block_bytes_ = json.at("block_bytes");
  plan.identity_ = json.at("identity");
  for (const auto& file : json.at("files")) plan.add(file.at(0), file.at(1));
  return plan;
}

std::string StagePlan::source_of(size_t file) const {
  return single_file_ ? source_ : data::join_path(source_, files_[file].name);
}

int64_t StagePlan::bytes() const {
  return files_.empty() ? 0 : files_.back().begin + files_.back().size;
}

int64_t StagePlan::blocks() const {
  return (bytes() + block_bytes_ - 1) / block_bytes_;
}

int64_t StagePlan::bytes_of(int64_t block) const {
  return std::min(block_bytes_, bytes() - block * block_bytes_);
}

std::vector<Piece> StagePlan::pieces(int64_t block) const {
  const int64_t begin = block * block_bytes_, end = begin + bytes_of(block);
  const auto after = std::ranges::upper_bound(files_, begin, {}, &StagedFile::begin);
  std::vector<Piece> pieces;
  for (auto file = after - 1; file != files_.end() && file->begin < end; ++file) {
    const int64_t from = std::max(begin, file->begin), to = std::min(end, file->begin + file->size);
    if (from < to)
      pieces.push_back({.file = static_cast<size_t>(file - files_.begin()),
                        .offset = from - file->begin,
                        .length = to - from,
                        .place = from - begin});
  }
  return pieces;
}

}  // namespace renkei::staging
