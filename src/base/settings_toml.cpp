// The TOML side of the settings, apart because toml++ is slow to compile.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/secrets.h"
#include "base/settings.h"

namespace renkei {
namespace {

std::string value_as_text(const toml::node& node, const std::string& where,
                          const std::string& name) {
  if (const auto value = node.value_exact<std::string>()) return *value;
  if (const auto value = node.value_exact<bool>()) return *value ? "true" : "false";
  if (const auto value = node.value_exact<int64_t>()) return fmt::format("{}", *value);
  if (const auto value = node.value_exact<double>()) return fmt::format("{}", *value);
  throw Error(ErrorCode::usage, fmt::format("{}: the value of '{}' is not one value", where, name),
              "a setting is a number, true or false, or a quoted text");
}

void load_table(Settings& settings, const toml::table& table, const std::string& prefix,
                const std::string& file) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      load_table(settings, *inner, name + ".", file);
      continue;
    }
    const std::string where = fmt::format("{} line {}", file, node.source().begin.line);
    settings.set(name, value_as_text(node, where, name), where);
  }
}

}  // namespace

void Settings::load_toml(const std::filesystem::path& file) {
  const std::string content = read_file(file);
  try {
    load_table(*this, toml::parse(content, file.string()), "", file.string());
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::usage,
                fmt::format("{} line {}: {}", file.string(), error.source().begin.line,
                            error.description()),
                "the file must be valid TOML: [section] lines and key = value lines");
  }
}

std::string Settings::to_toml() const {
  std::string page, section;
  for (const Setting& setting : declared_) {
    const size_t dot = setting.name.find('.');
    if (setting.name.substr(0, dot) != section) {
      section = setting.name.substr(0, dot);
      page += fmt::format("{}[{}]\n", page.empty() ? "" : "\n", section);
    }
    const std::string& value = values_.find(setting.name)->second;
    const bool bare = value != "auto" &&
                      (setting.kind == SettingKind::boolean ||
                       setting.kind == SettingKind::integer || setting.kind == SettingKind::real);
    std::ostringstream quoted;
    quoted << toml::value<std::string>(without_secrets(value));
    // A real without a point or an exponent would read back as an integer; both are accepted.
    page += fmt::format("{} = {}  # {}\n", setting.name.substr(dot + 1),
                        bare ? value : quoted.str(), setting.help);
  }
  return page;
}

}  // namespace renkei
