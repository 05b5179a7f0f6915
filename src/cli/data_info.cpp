#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/data_sources.h"
#include "data/storage/storage_settings.h"

namespace renkei::cli {
namespace {

struct Summary {
  int64_t samples = 0, bytes = 0, files = 0, classes = 0;
};

Summary summarise(const OpenedSources& sources) {
  Summary summary;
  sources.for_each([&](const char*, const data::Source& source) {
    summary.samples += source.count();
    summary.files += source.files();
    summary.classes = std::max(summary.classes, source.classes());
    for (int64_t sample = 0; sample < source.count(); ++sample)
      summary.bytes += source.locate(sample).length;
  });
  return summary;
}

// Of a packed data set; null of others, whose samples would all have to be read.
nlohmann::json checksum_of(const Settings& settings, const std::string& path) {
  const auto storage = data::open_storage(path, data::storage_options(settings));
  const std::string file = data::join_path(path, "dataset.json");
  if (!storage->is_file(file)) return nullptr;
  const auto description = nlohmann::json::parse(storage->read(file), nullptr, false);
  return description.is_object() ? description.value("checksum", nlohmann::json()) : nullptr;
}

int run(Invocation& invocation, const std::string& path) {
  const OpenedSources sources = open_sources(invocation, path);
  const Summary summary = summarise(sources);
  const nlohmann::json checksum = checksum_of(invocation.settings, path);
  if (invocation.json) {
    nlohmann::json output{{"command", invocation.command},
                          {"version", kVersion},
                          {"format", sources.train->format()},
                          {"samples", summary.samples},
                          {"bytes", summary.bytes},
                          {"shards", summary.files},
                          {"classes", summary.classes},
                          {"class_names", sources.train->class_names()},
                          {"checksum", checksum}};
    sources.for_each([&](const char* name, const data::Source& source) {
      output["parts"][name] = source.count();
    });
    fmt::print("{}\n", output.dump(2));
    return 0;
  }
  fmt::print("{}: {}\n", path, sources.train->format());
  sources.for_each([](const char* name, const data::Source& source) {
    fmt::print("  {:<10}{} samples in {} files\n", name, format_count(source.count()),
               format_count(source.files()));
  });
  fmt::print("  {:<10}{}\n", "bytes", format_size(summary.bytes));
  fmt::print("  {:<10}{}\n", "classes", summary.classes);
  if (const auto layout = sources.train->layout())
    fmt::print("  {:<10}{} numbers of {} bytes\n", "sample", layout->elements(),
               layout->type.bytes);
  if (checksum.is_string()) fmt::print("  {:<10}{}\n", "checksum", checksum.get<std::string>());
  return 0;
}

}  // namespace

Command make_data_info_command() {
  const auto path = std::make_shared<std::string>();
  return {.name = "data info",
          .summary = "what a data set holds",
          .sections = {},
          .add_flags =
              [path](Arguments& arguments) {
                arguments.option("source", *path, "the data set").required();
              },
          .run = [path](Invocation& invocation) { return run(invocation, *path); }};
}

}  // namespace renkei::cli
