#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/units.h"
#include "base/version.h"
#include "capture/open_network.h"
#include "cli/commands.h"
#include "cli/data_sources.h"
#include "data/field_map.h"
#include "data/storage/storage_settings.h"
#include "job/network_data.h"
#include "report/table.h"

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
      summary.bytes += source.bytes(sample);
  });
  return summary;
}

struct FieldRow {
  std::string name, input;  // in the data, and of the program; empty: it is not used
  data::DType dtype = data::DType::f32;
  std::optional<std::vector<int64_t>> shape;  // none: that of an image is the program's
  int64_t classes = 0;
  std::string origin;
};

// Which input each field becomes: of the model, or of any that calls its inputs like this.
std::vector<data::MappedField> mapped_fields(const std::vector<std::string>& names,
                                             Settings& settings, const std::string& model) {
  data::FieldMap map = data::parse_field_map(settings.text("data.fields"));
  if (model.empty()) return data::map_fields(map, names);
  settings.set("model.name", model, "--model");
  const capture::OpenNetwork open = capture::open_network(settings);
  map = data::match_inputs(map, job::wanted_inputs(job::needs_of(open.network, 1)), names);
  std::vector<data::MappedField> mapped = data::map_fields(map, names);
  for (data::MappedField& field : mapped)
    if (std::ranges::count(map, field.name, &data::FieldMapping::input) == 0) field.name.clear();
  return mapped;
}

std::vector<FieldRow> describe_fields(const data::Source& source, Settings& settings,
                                      int64_t classes, const std::string& model) {
  std::vector<std::string> names;
  for (const data::StoredField& field : source.fields()) names.push_back(field.name);
  std::vector<FieldRow> rows;
  for (const auto& [number, input] : mapped_fields(names, settings, model)) {
    const data::StoredField& field = source.fields()[number];
    FieldRow row{.name = field.name, .input = input, .origin = field.origin};
    if (field.is_label()) {
      row.dtype = data::DType::i64;
      row.shape.emplace();
      row.classes = classes;
    } else if (field.layout) {
      row.dtype = data::dtype_of(field.layout->type);
      row.shape = field.layout->shape;
    } else {
      row.origin += ", decoded";
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string table_of(const std::vector<FieldRow>& rows) {
  report::Table table(
      {{"field"}, {"dtype"}, {"shape"}, {"classes", report::Align::right}, {"from"}, {"goes to"}});
  for (const FieldRow& row : rows)
    table.add_row({row.name, std::string(data::name_of(row.dtype)),
                   !row.shape           ? "3 × height × width"
                   : row.shape->empty() ? "one number"
                                        : fmt::format("{}", fmt::join(*row.shape, " × ")),
                   row.classes > 0 ? format_count(row.classes) : "", row.origin,
                   row.input.empty() ? "nothing" : row.input});
  return table.text();
}

nlohmann::json json_of(const std::vector<FieldRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const FieldRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"input", row.input},
                    {"dtype", data::name_of(row.dtype)},
                    {"shape", nullptr},
                    {"classes", row.classes},
                    {"origin", row.origin}});
    if (row.shape) list.back()["shape"] = *row.shape;
  }
  return list;
}

// Of a packed data set; null of others, whose samples would all have to be read.
nlohmann::json checksum_of(const Settings& settings, const std::string& path) {
  const auto storage = data::open_storage(path, data::storage_options(settings));
  const std::string file = data::join_path(path, "dataset.json");
  if (!storage->is_file(file)) return nullptr;
  const auto description = nlohmann::json::parse(storage->read(file), nullptr, false);
  return description.is_object() ? description.value("checksum", nlohmann::json()) : nullptr;
}

int run(Invocation& invocation, const std::string& path, const std::string& model) {
  const OpenedSources sources = open_sources(invocation, path);
  const Summary summary = summarise(sources);
  const nlohmann::json checksum = checksum_of(invocation.settings, path);
  const std::vector<FieldRow> fields =
      describe_fields(*sources.train, invocation.settings, summary.classes, model);
  if (invocation.json) {
    nlohmann::json output{{"command", invocation.command},
                          {"version", kVersion},
                          {"format", sources.train->format()},
                          {"samples", summary.samples},
                          {"bytes", summary.bytes},
                          {"shards", summary.files},
                          {"classes", summary.classes},
                          {"class_names", sources.train->class_names()},
                          {"fields", json_of(fields)},
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
  if (checksum.is_string()) fmt::print("  {:<10}{}\n", "checksum", checksum.get<std::string>());
  fmt::print("\n{}", table_of(fields));
  return 0;
}

}  // namespace

Command make_data_info_command() {
  const auto path = std::make_shared<std::string>(), model = std::make_shared<std::string>();
  return {.name = "data info",
          .summary = "what a data set holds",
          .sections = {},
          .add_flags =
              [path, model](Arguments& arguments) {
                arguments.option("source", *path, "the data set").required();
                arguments.option("--model", *model,
                                 "say which field becomes which input of this model, a name or a "
                                 ".pt2 file");
              },
          .run = [path, model](Invocation& invocation) { return run(invocation, *path, *model); }};
}

}  // namespace renkei::cli
