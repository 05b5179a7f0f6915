// Every setting is declared once: name, kind, range, default, help. The declarations make the
// flags of the commands, the keys of the TOML file, --set, --print-config, the help texts and
// docs/settings.md. A module declares the settings it reads, beside the code that they switch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace renkei {

enum class SettingKind { boolean, integer, real, size, duration, text, choice };

struct Setting {
  std::string name;  // "section.key"
  SettingKind kind = SettingKind::text;
  std::string default_value;  // as text; "auto" where Renkei chooses
  std::string help;           // one sentence, no full stop
  double low = -1e300;  // inclusive range of numbers (in bytes or seconds for sizes, durations)
  double high = 1e300;
  std::vector<std::string> choices = {};
  std::string file_ending = {};  // ".pt2": a choice may also be a file of this kind
  std::string file_hint = {};    // for those who give another kind of file
  std::string flag = {};         // "--batch": also a flag of the commands that use its section
};

class Settings {
 public:
  void declare(Setting setting);
  const std::vector<Setting>& declared() const { return declared_; }

  // Parses and checks at once. `origin` ("--set", "job.toml line 3") goes into the error.
  void set(std::string_view name, std::string_view value, std::string_view origin);
  void set_assignment(std::string_view assignment, std::string_view origin);  // "train.lr=0.1"
  void load_toml(const std::filesystem::path& file);

  // The value; asking for an undeclared name, or with the wrong kind, is a bug.
  bool boolean(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  int64_t size_bytes(std::string_view name) const;
  double seconds(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  // For settings that may be left to Renkei: empty while the value is "auto".
  std::optional<int64_t> integer_unless_auto(std::string_view name) const;
  std::optional<int64_t> size_unless_auto(std::string_view name) const;
  bool is_auto(std::string_view name) const { return value_of(name) == "auto"; }

  std::string to_toml() const;      // fully resolved, a valid input for load_toml
  std::string to_markdown() const;  // the table of docs/settings.md

 private:
  const Setting& find(std::string_view name) const;
  const std::string& value_of(std::string_view name, std::optional<SettingKind> kind = {}) const;

  std::vector<Setting> declared_;  // in order of declaration: sections stay together
  std::map<std::string, std::string, std::less<>> values_;
};

// The candidate with the smallest edit distance, if it is near enough to be a typing mistake.
std::optional<std::string> nearest_name(std::string_view word,
                                        const std::vector<std::string>& candidates);

}  // namespace renkei
