#include "checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/version.h"
#include "capture/named_tensors.h"

namespace renkei::checkpoint {
namespace {

using json = nlohmann::ordered_json;

constexpr double kMost = 9e18;
constexpr int64_t kMostInteger = INT64_MAX;
constexpr std::string_view kFormat = "renkei checkpoint";
constexpr std::string_view kBeforeChecksum = "{\n \"checksum\": \"";
constexpr std::string_view kNoChecksum = "0000000000000000";
constexpr const char* kHint = "an older checkpoint may still be whole";

// The checksum is that of the text with zeros in its place.
std::string sealed(std::string text) {
  const std::string checksum = Checksum().add(text).hex();
  return text.replace(kBeforeChecksum.size(), kNoChecksum.size(), checksum);
}

[[noreturn]] void refuse(const std::string& source, std::string_view what) {
  throw Error(ErrorCode::data, fmt::format("{}: {}", source, what), kHint);
}

json to_json(const TensorEntry& tensor) {
  json pieces = json::array();
  for (const Piece& piece : tensor.pieces)
    pieces.push_back(
        {{"file", piece.file}, {"key", piece.key}, {"begin", piece.begin}, {"count", piece.count}});
  return {{"dtype", program::name_of(tensor.dtype)}, {"sizes", tensor.sizes}, {"pieces", pieces}};
}

// A file of this directory, and nothing else.
void check_file_name(const std::string& name, const std::string& source) {
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos)
    refuse(source, fmt::format("'{}' is no name of a file of a checkpoint", name));
}

TensorEntry tensor_from(const JsonFields& fields, const std::string& name,
                        const std::set<std::string>& files, const std::string& source) {
  TensorEntry tensor;
  const std::string dtype = fields.text("dtype");
  const auto known = program::dtype_from_name(dtype);
  if (!known) fields.refuse("dtype", "be the name of a type");
  tensor.dtype = *known;
  tensor.sizes = fields.integers("sizes", 0, kMostInteger);
  const auto count = capture::count_elements(tensor.sizes, tensor.dtype);
  if (!count) fields.refuse("sizes", "be sizes that can be");
  int64_t at = 0;
  for (const JsonFields& piece : fields.objects("pieces")) {
    Piece read{.file = piece.text("file"),
               .key = piece.text("key"),
               .begin = piece.integer("begin", 0, *count),
               .count = piece.integer("count", 0, *count)};
    if (!files.contains(read.file))
      refuse(source, fmt::format("'{}' is in the file {}, which is not listed", name, read.file));
    if (read.begin != at)
      refuse(source, fmt::format("of '{}' the element {} is missing or there twice", name, at));
    at += read.count;
    tensor.pieces.push_back(std::move(read));
  }
  if (at != *count)
    refuse(source, fmt::format("of '{}' there are {} of {} elements", name, at, *count));
  return tensor;
}

Progress progress_from(const JsonFields& fields) {
  Progress progress{.step = fields.integer("step", 0, kMostInteger),
                    .steps = fields.integer("steps", 0, kMostInteger),
                    .epoch = fields.integer("epoch", 0, kMostInteger),
                    .sample_in_epoch = fields.integer("sample_in_epoch", 0, kMostInteger),
                    .batch = fields.integer("batch", 0, kMostInteger),
                    .samples = fields.integer("samples", 0, kMostInteger),
                    .seed = static_cast<uint64_t>(fields.integer("seed", 0, kMostInteger)),
                    .optimizer = fields.text("optimizer"),
                    .loss_scale = fields.real("loss_scale", 1e-300, kMost),
                    .good_steps = fields.integer("good_steps", 0, kMostInteger),
                    .first_loss = fields.real_or("first_loss", -1e300, 1e300, 0),
                    .last_loss = fields.real_or("last_loss", -1e300, 1e300, 0)};
  return progress;
}

}  // namespace

int64_t TensorEntry::count() const {
  return capture::count_elements(sizes, dtype).value_or(0);
}

std::string optimizer_name(int state, const std::string& parameter) {
  return fmt::format("optimizer/{}/{}", state, parameter);
}

std::string copy_name(size_t copy, const std::string& buffer) {
  return copy == 0 ? buffer : fmt::format("copy/{}/{}", copy, buffer);
}

std::string to_text(const Manifest& manifest) {
  const Progress& progress = manifest.progress;
  json files = json::array(), tensors = json::object();
  for (const FileEntry& file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"checksum", file.checksum}});
  for (const auto& [name, tensor] : manifest.tensors) tensors[name] = to_json(tensor);
  const json content{{"checksum", kNoChecksum},
                     {"format", kFormat},
                     {"version", kFormatVersion},
                     {"renkei", kVersion},
                     {"progress",
                      {{"step", progress.step},
                       {"steps", progress.steps},
                       {"epoch", progress.epoch},
                       {"sample_in_epoch", progress.sample_in_epoch},
                       {"batch", progress.batch},
                       {"samples", progress.samples},
                       {"seed", progress.seed},
                       {"optimizer", progress.optimizer},
                       {"loss_scale", progress.loss_scale},
                       {"good_steps", progress.good_steps},
                       {"first_loss", progress.first_loss},
                       {"last_loss", progress.last_loss},
                       {"metrics", progress.metrics}}},
                     {"notes", manifest.notes},
                     {"files", files},
                     {"tensors", tensors},
                     {"plan", json::parse(manifest.plan.empty() ? "null" : manifest.plan)},
                     {"settings", manifest.settings}};
  return sealed(content.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Manifest parse_manifest(const std::string& text, const std::string& source) {
  std::string zeroed = text;
  if (!text.starts_with(kBeforeChecksum) ||
      text.size() < kBeforeChecksum.size() + kNoChecksum.size())
    refuse(source, "it is not the manifest of a checkpoint");
  zeroed.replace(kBeforeChecksum.size(), kNoChecksum.size(), kNoChecksum);
  if (sealed(zeroed) != text) refuse(source, "it is damaged: its checksum does not match");
  const nlohmann::json content = parse_json(text, source);
  const JsonFields fields(content, source);
  if (fields.text("format") != kFormat) refuse(source, "it is not the manifest of a checkpoint");
  if (const int64_t version = fields.integer("version", 1, kMostInteger); version > kFormatVersion)
    throw Error(ErrorCode::data,
                fmt::format("{}: the checkpoint is of version {}, and this renkei ({}) reads "
                            "versions up to {}",
                            source, version, kVersion, kFormatVersion),
                "use the renkei that wrote it, or a newer one");
  Manifest manifest;
  manifest.progress = progress_from(fields.object("progress"));
  for (const char* part : {"notes", "tensors"}) fields.object(part);
  fields.object("progress").object("metrics");
  for (const auto& [name, value] : content.at("progress").at("metrics").items())
    if (value.is_number()) manifest.progress.metrics[name] = value.get<double>();
  for (const auto& [name, value] : content.at("notes").items())
    if (value.is_string()) manifest.notes[name] = value.get<std::string>();
  manifest.settings = fields.text("settings");
  if (fields.has("plan")) manifest.plan = content.at("plan").dump();
  std::set<std::string> names;
  for (const JsonFields& file : fields.objects("files")) {
    FileEntry entry{.name = file.text("name"),
                    .bytes = file.integer("bytes", 0, kMostInteger),
                    .checksum = file.text("checksum")};
    check_file_name(entry.name, source);
    names.insert(entry.name);
    manifest.files.push_back(std::move(entry));
  }
  for (const auto& [name, tensor] : content.at("tensors").items())
    manifest.tensors.emplace(
        name, tensor_from(JsonFields(tensor, source + ": " + name), name, names, source));
  return manifest;
}

}  // namespace renkei::checkpoint
