#include "base/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/units.h"

namespace renkei {
namespace {

std::string_view name_of(SettingKind kind) {
  switch (kind) {
    case SettingKind::boolean:
      return "true or false";
    case SettingKind::integer:
      return "whole number";
    case SettingKind::real:
      return "number";
    case SettingKind::size:
      return "size";
    case SettingKind::duration:
      return "duration";
    case SettingKind::text:
      return "text";
    case SettingKind::choice:
      return "one of";
  }
  return "";
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

std::string format_bound(const Setting& setting, double bound) {
  if (setting.kind == SettingKind::size) return format_size(static_cast<int64_t>(bound));
  if (setting.kind == SettingKind::duration) return format_duration(bound);
  return fmt::format("{:g}", bound);
}

// "from 1", "at most 5", "from 1 to 5", or nothing.
std::string describe_range(const Setting& setting) {
  const bool has_low = setting.low > -1e300, has_high = setting.high < 1e300;
  if (has_low && has_high)
    return fmt::format("from {} to {}", format_bound(setting, setting.low),
                       format_bound(setting, setting.high));
  if (has_low) return fmt::format("at least {}", format_bound(setting, setting.low));
  if (has_high) return fmt::format("at most {}", format_bound(setting, setting.high));
  return "";
}

std::string describe_kind(const Setting& setting) {
  if (setting.kind == SettingKind::choice)
    return fmt::format("one of {}{}", fmt::join(setting.choices, ", "),
                       setting.file_ending.empty() ? "" : ", or FILE" + setting.file_ending);
  const std::string range = describe_range(setting);
  return fmt::format("{}{}{}", name_of(setting.kind), range.empty() ? "" : " ", range);
}

// The value as a number, for the kinds that are numbers; throws where the text is not of the kind.
std::optional<double> parse_checked(const Setting& setting, std::string_view value,
                                    std::string_view origin) {
  const auto fail = [&] {
    return Error(ErrorCode::usage,
                 fmt::format("{}: '{}' is not a valid value of {}", origin, value, setting.name),
                 fmt::format("{} is a {}", setting.name, describe_kind(setting)));
  };
  switch (setting.kind) {
    case SettingKind::text:
      return std::nullopt;
    case SettingKind::boolean:
      if (value != "true" && value != "false") throw fail();
      return std::nullopt;
    case SettingKind::choice:
      if (!setting.file_ending.empty() && value.ends_with(setting.file_ending)) return std::nullopt;
      if (std::ranges::find(setting.choices, value) == setting.choices.end()) {
        Error error = fail();
        error.hint = fmt::format("choose {}", describe_kind(setting));
        if (!setting.file_hint.empty() && value.find('.') != std::string_view::npos)
          error.hint = setting.file_hint;
        else if (const auto near = nearest_name(value, setting.choices))
          error.hint = fmt::format("did you mean {}? {}", *near, error.hint);
        throw error;
      }
      return std::nullopt;
    case SettingKind::integer:
      if (const auto number = parse_number<int64_t>(value)) return static_cast<double>(*number);
      throw fail();
    case SettingKind::real:
      if (const auto number = parse_number<double>(value)) return *number;
      throw fail();
    case SettingKind::size:
    case SettingKind::duration:
      try {
        return setting.kind == SettingKind::size ? static_cast<double>(parse_size(value))
                                                 : parse_duration(value);
      } catch (const Error&) {
        throw fail();
      }
  }
  throw fail();
}

}  // namespace

void Settings::declare(Setting setting) {
  if (setting.name.find('.') == std::string::npos || values_.contains(setting.name))
    throw Error(ErrorCode::bug, fmt::format("the setting {} is declared badly", setting.name));
  values_[setting.name] = setting.default_value;
  // Behind the last of its section, which a TOML file may open only once.
  const std::string section = setting.name.substr(0, setting.name.find('.') + 1);
  const auto last = std::find_if(declared_.rbegin(), declared_.rend(), [&](const Setting& other) {
    return other.name.starts_with(section);
  });
  const auto place = last == declared_.rend() ? declared_.end() : last.base();
  const Setting& declared = *declared_.insert(place, std::move(setting));
  if (declared.default_value != "auto")
    parse_checked(declared, declared.default_value, "the default");
}

const Setting& Settings::find(std::string_view name) const {
  const auto found = std::ranges::find(declared_, name, &Setting::name);
  if (found == declared_.end())
    throw Error(ErrorCode::bug, fmt::format("the setting {} is read but not declared", name));
  return *found;
}

void Settings::set(std::string_view name, std::string_view value, std::string_view origin) {
  const auto found = std::ranges::find(declared_, name, &Setting::name);
  if (found == declared_.end()) {
    std::vector<std::string> names;
    for (const Setting& setting : declared_) names.push_back(setting.name);
    const auto near = nearest_name(name, names);
    throw Error(ErrorCode::usage, fmt::format("{}: there is no setting '{}'", origin, name),
                near ? fmt::format("did you mean {}?", *near)
                     : "'renkei help settings' lists all settings");
  }
  // Only what Renkei can choose by itself may be handed back to it.
  if (value == "auto" && found->default_value == "auto") {
    values_.find(name)->second = value;
    return;
  }
  const auto number = parse_checked(*found, value, origin);
  if (number && !(*number >= found->low && *number <= found->high))  // NaN is in no range
    throw Error(ErrorCode::usage, fmt::format("{}: {} = {} is out of range", origin, name, value),
                fmt::format("{} must be {}", name, describe_range(*found)));
  // One spelling for each number, so that a file that was written and read back is the same.
  values_.find(name)->second =
      found->kind == SettingKind::real ? fmt::format("{}", *number) : std::string(value);
}

void Settings::set_assignment(std::string_view assignment, std::string_view origin) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    throw Error(ErrorCode::usage, fmt::format("{}: '{}' is not KEY=VALUE", origin, assignment),
                "write it like --set train.lr=0.1");
  set(assignment.substr(0, equals), assignment.substr(equals + 1), origin);
}

const std::string& Settings::value_of(std::string_view name,
                                      std::optional<SettingKind> kind) const {
  const Setting& setting = find(name);
  if (kind && setting.kind != *kind)
    throw Error(ErrorCode::bug, fmt::format("the setting {} is read as another kind", name));
  return values_.find(name)->second;
}

bool Settings::boolean(std::string_view name) const {
  return value_of(name, SettingKind::boolean) == "true";
}

int64_t Settings::integer(std::string_view name) const {
  return parse_number<int64_t>(value_of(name, SettingKind::integer)).value();
}

double Settings::real(std::string_view name) const {
  return parse_number<double>(value_of(name, SettingKind::real)).value();
}

int64_t Settings::size_bytes(std::string_view name) const {
  return parse_size(value_of(name, SettingKind::size));
}

double Settings::seconds(std::string_view name) const {
  return parse_duration(value_of(name, SettingKind::duration));
}

const std::string& Settings::text(std::string_view name) const {
  const SettingKind kind = find(name).kind;
  return value_of(name, kind == SettingKind::choice ? kind : SettingKind::text);
}

std::optional<int64_t> Settings::integer_unless_auto(std::string_view name) const {
  if (is_auto(name)) return std::nullopt;
  return integer(name);
}

std::optional<int64_t> Settings::size_unless_auto(std::string_view name) const {
  if (is_auto(name)) return std::nullopt;
  return size_bytes(name);
}

std::string Settings::to_markdown() const {
  std::string page, section;
  for (const Setting& setting : declared_) {
    const std::string own = setting.name.substr(0, setting.name.find('.'));
    if (own != section) {
      section = own;
      page += fmt::format("\n## {}\n\n| setting | flag | default | values | meaning |\n", section);
      page += "|---|---|---|---|---|\n";
    }
    page +=
        fmt::format("| `{}` | {} | {} | {} | {} |\n", setting.name,
                    setting.flag.empty() ? "" : fmt::format("`{}`", setting.flag),
                    setting.default_value.empty() ? "" : fmt::format("`{}`", setting.default_value),
                    describe_kind(setting), setting.help);
  }
  return page;
}

std::optional<std::string> nearest_name(std::string_view word,
                                        const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    // Levenshtein with one row.
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t replaced = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace renkei
