// Manifests, plans, graphs, descriptions of machines and settings from nowhere: read, and written
// again where they can be. What people write themselves may be a mistake of theirs, too.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/settings.h"
#include "checkpoint/manifest.h"
#include "cluster/description.h"
#include "graph/graph_json.h"
#include "plan/plan_file.h"
#include "tests/base/temporary_directory.h"

namespace renkei {

inline void same_again(const std::string& once, const std::string& twice) {
  if (once != twice) throw std::logic_error("it is another one when written and read:\n" + once);
}

// Its checksum is made right: damage is to get further than that.
inline void parse_manifest_text(std::string_view bytes) {
  std::string text(bytes);
  constexpr size_t kBegin = 16, kDigits = 16;
  if (text.size() > kBegin + kDigits) {
    text.replace(kBegin, kDigits, kDigits, '0');
    text.replace(kBegin, kDigits, Checksum().add(text).hex());
  }
  const std::string again = checkpoint::to_text(checkpoint::parse_manifest(text, "file"));
  same_again(again, checkpoint::to_text(checkpoint::parse_manifest(again, "again")));
}

inline void parse_plan_text(std::string_view text) {
  const plan::Plan read = plan::plan_from_json(parse_json(text, "file"), "file");
  const std::string again = plan::to_json(read).dump();
  same_again(again,
             plan::to_json(plan::plan_from_json(parse_json(again, "again"), "again")).dump());
}

inline void parse_graph_text(std::string_view text) {
  const graph::Graph read = graph::graph_from_json(parse_json(text, "file"), "file");
  const std::string again = graph::to_json(read).dump();
  same_again(again,
             graph::to_json(graph::graph_from_json(parse_json(again, "again"), "again")).dump());
}

inline void parse_cluster_text(std::string_view text) {
  const std::string again = cluster::format_description(cluster::parse_description(text, "file"));
  same_again(again, cluster::format_description(cluster::parse_description(again, "again")));
}

// One of each kind.
inline void parse_settings_text(std::string_view text) {
  Settings settings;
  const auto declare = [&](const char* name, SettingKind kind, const char* value) {
    settings.declare({.name = name,
                      .kind = kind,
                      .default_value = value,
                      .help = "",
                      .choices = kind == SettingKind::choice
                                     ? std::vector<std::string>{"one", "two"}
                                     : std::vector<std::string>{}});
  };
  declare("train.flag", SettingKind::boolean, "false");
  declare("train.steps", SettingKind::integer, "auto");
  declare("train.lr", SettingKind::real, "0.1");
  declare("data.memory", SettingKind::size, "1GiB");
  declare("comm.timeout", SettingKind::duration, "300s");
  declare("model.name", SettingKind::text, "mlp");
  declare("model.kind", SettingKind::choice, "one");
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "file.toml", text);
  settings.load_toml(directory / "file.toml");
  const std::string again = settings.to_toml();
  write_file_atomically(directory / "file.toml", again);
  settings.load_toml(directory / "file.toml");
  same_again(again, settings.to_toml());
}

// It must end well or throw a data or a usage Error.
template <typename Parse>
void expect_text_error_only(Parse parse, std::string_view bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    if (error.code != ErrorCode::data && error.code != ErrorCode::usage) throw;
  }
}

}  // namespace renkei
