// The TOML side of the descriptions, apart because toml++ is slow to compile.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/settings.h"
#include "base/units.h"
#include "cluster/description.h"
#include "cluster/machines.h"

namespace renkei::cluster {
namespace {

// The keys of one table. Each is asked for by name; what was never asked for is unknown, and an
// error.
class Table {
 public:
  Table(const toml::table& table, std::string source) : table_(table), source_(std::move(source)) {}

  [[noreturn]] void refuse(const toml::node* node, const std::string& what) const {
    const auto line = (node ? node->source() : table_.source()).begin.line;
    throw Error(ErrorCode::usage, fmt::format("{} line {}: {}", source_, line, what),
                "docs/plan.md describes the file");
  }

  const toml::node* find(std::string_view key) {
    asked_.emplace_back(key);
    return table_.get(key);
  }
  const toml::node& need(std::string_view key) {
    const toml::node* node = find(key);
    if (!node) refuse(nullptr, fmt::format("'{}' is missing", key));
    return *node;
  }
  double number(std::string_view key, double low, double high) {
    const toml::node& node = need(key);
    const auto value = node.value<double>();
    if (!value || !(*value >= low && *value <= high))
      refuse(&node, fmt::format("'{}' must be a number from {} to {}", key, low, high));
    return *value;
  }
  double number_or(std::string_view key, double low, double high, double otherwise) {
    return find(key) ? number(key, low, high) : otherwise;
  }
  int whole(std::string_view key, int high) {
    const double value = number(key, 1, high);
    if (value != static_cast<int>(value))
      refuse(table_.get(key), fmt::format("'{}' must be a whole number", key));
    return static_cast<int>(value);
  }
  std::string text(std::string_view key) {
    const toml::node& node = need(key);
    const auto value = node.value<std::string>();
    if (!value) refuse(&node, fmt::format("'{}' must be a text in quotes", key));
    return *value;
  }
  std::string text_or(std::string_view key, std::string otherwise) {
    return find(key) ? text(key) : std::move(otherwise);
  }
  bool boolean_or(std::string_view key, bool otherwise) {
    const toml::node* node = find(key);
    if (!node) return otherwise;
    if (!node->is_boolean()) refuse(node, fmt::format("'{}' must be true or false", key));
    return *node->value<bool>();
  }
  int64_t size(std::string_view key) {
    const std::string value = text(key);
    try {
      return parse_size(value);
    } catch (const Error& error) {
      refuse(table_.get(key), error.message);
    }
  }
  std::optional<Table> table(std::string_view key) {
    const toml::node* node = find(key);
    if (!node) return std::nullopt;
    if (!node->is_table()) refuse(node, fmt::format("'{}' must be a table", key));
    return Table(*node->as_table(), source_);
  }
  const toml::table& raw() const { return table_; }
  const std::string& source() const { return source_; }

  void refuse_unknown() const {
    for (const auto& [key, node] : table_)
      if (const std::string name(key.str()); std::ranges::count(asked_, name) == 0) {
        const auto near = nearest_name(name, asked_);
        refuse(&node, fmt::format("unknown key '{}'{}", name,
                                  near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
      }
  }

 private:
  const toml::table& table_;
  std::string source_;
  std::vector<std::string> asked_;
};

comm::LinkCost link_from(Table table) {
  const comm::LinkCost link{table.number("latency_seconds", 0, 10),
                            table.number("bytes_per_second", 1, 1e18)};
  table.refuse_unknown();
  return link;
}

DeviceKind device_from(const std::string& name, Table table) {
  DeviceKind kind{.name = name,
                  .flops_per_second = table.number("flops_per_second", 1, 1e21),
                  .efficiency = table.number_or("efficiency", 1e-6, 1, 1),
                  .memory_bytes = table.size("memory"),
                  .memory_bytes_per_second = table.number("memory_bytes_per_second", 1, 1e18),
                  .call_seconds = table.number_or("call_seconds", 0, 10, 0),
                  .spread = table.number_or("spread", 0, 0.5, 0)};
  table.refuse_unknown();
  return kind;
}

Nodes nodes_from(Table table, const std::vector<DeviceKind>& kinds) {
  Nodes nodes{.count = table.whole("count", 1 << 20), .devices = table.whole("devices", 1 << 12)};
  const std::string device = table.text("device");
  const auto kind = std::ranges::find(kinds, device, &DeviceKind::name);
  if (kind == kinds.end())
    table.refuse(table.find("device"), fmt::format("there is no [device.{}]", device));
  nodes.kind = static_cast<int>(kind - kinds.begin());
  nodes.memory_bytes = table.size("memory");
  if (auto link = table.table("link"))
    nodes.link = link_from(*link);
  else if (nodes.devices > 1)
    table.refuse(nullptr, "'link' is missing: nodes with several devices need one");
  table.refuse_unknown();
  return nodes;
}

Interconnect interconnect_from(Table table) {
  Interconnect net;
  net.link = {table.number("latency_seconds", 0, 10), table.number("bytes_per_second", 1, 1e18)};
  if (table.find("adapters")) net.adapters = table.whole("adapters", 1 << 10);
  if (table.find("group_nodes")) {
    net.group_nodes = table.whole("group_nodes", 1 << 20);
    auto uplink = table.table("uplink");
    if (!uplink) table.refuse(nullptr, "'uplink' is missing: groups of nodes need one");
    net.uplink = link_from(*uplink);
  }
  table.refuse_unknown();
  return net;
}

Storage storage_from(Table table) {
  Storage storage{.name = table.text_or("name", ""),
                  .read_bytes_per_second = table.number("read_bytes_per_second", 1, 1e18),
                  .open_seconds = table.number_or("open_seconds", 0, 10, 0)};
  table.refuse_unknown();
  return storage;
}

Run run_from(Table table) {
  Run run{.model = table.text_or("model", ""),
          .devices = table.text_or("devices", ""),
          .batch_per_device = static_cast<int64_t>(table.number_or("batch_per_device", 1, 1e9, 0)),
          .device_samples_per_second = table.number_or("device_samples_per_second", 1e-9, 1e12, 0),
          .algorithm = table.text_or("algorithm", ""),
          .wire = table.text_or("wire", ""),
          .overlap = table.boolean_or("overlap", true),
          .samples = table.number_or("samples", 1, 1e18, 0),
          .epochs = table.number_or("epochs", 0, 1e9, 0)};
  if (table.find("sample_bytes")) run.sample_bytes = table.size("sample_bytes");
  table.refuse_unknown();
  return run;
}

Description description_from(Table table) {
  if (const double version = table.number("version", 0, 1e9); version != 1)
    table.refuse(
        table.find("version"),
        fmt::format("descriptions of version {} are not known; this renkei reads version 1",
                    version));
  Description description{.name = table.text("name"), .summary = table.text_or("summary", "")};
  auto devices = table.table("device");
  if (!devices) table.refuse(nullptr, "there is no [device.NAME]");
  for (const auto& [name, node] : devices->raw()) {
    const std::string kind(name.str());
    description.kinds.push_back(device_from(kind, *devices->table(kind)));
  }
  const toml::node& nodes = table.need("nodes");
  const toml::array* list = nodes.as_array();
  if (!list || !list->is_homogeneous<toml::table>())
    table.refuse(&nodes, "'nodes' must be a list of tables: [[nodes]]");
  for (const toml::node& node : *list)
    description.nodes.push_back(
        nodes_from(Table(*node.as_table(), table.source()), description.kinds));
  const auto net = table.table("interconnect");
  if (net)
    description.interconnect = interconnect_from(*net);
  else if (list->size() > 1 || description.nodes.front().count > 1)
    table.refuse(nullptr, "[interconnect] is missing: several nodes need one");
  if (const auto storage = table.table("storage")) description.storage = storage_from(*storage);
  if (const auto run = table.table("run")) description.run = run_from(*run);
  table.refuse_unknown();
  return description;
}

}  // namespace

Description parse_description(std::string_view text, const std::string& source) {
  try {
    const toml::table table = toml::parse(text, source);
    return description_from(Table(table, source));
  } catch (const toml::parse_error& error) {
    throw Error(
        ErrorCode::usage,
        fmt::format("{} line {}: {}", source, error.source().begin.line, error.description()),
        "the file must be valid TOML");
  }
}

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const ShippedMachine& machine : kShippedMachines) names.emplace_back(machine.name);
  return names;
}

Description load_description(const std::string& name_or_file) {
  for (const ShippedMachine& machine : kShippedMachines)
    if (name_or_file == machine.name)
      return parse_description(machine.toml, std::string(machine.name) + ".toml");
  if (!std::filesystem::exists(name_or_file))
    throw Error(ErrorCode::usage,
                fmt::format("there is no cluster '{}', and no such file", name_or_file),
                fmt::format("choose local, {}, or a TOML file (docs/plan.md)",
                            fmt::join(shipped_machines(), ", ")));
  return parse_description(read_file(name_or_file), name_or_file);
}

}  // namespace renkei::cluster
