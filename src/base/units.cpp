#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace renkei {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kSizes{Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30},
                            Unit{"TiB", 0x1p40}, Unit{"kB", 1e3},     Unit{"KB", 1e3},
                            Unit{"MB", 1e6},     Unit{"GB", 1e9},     Unit{"TB", 1e12},
                            Unit{"K", 0x1p10},   Unit{"M", 0x1p20},   Unit{"G", 0x1p30},
                            Unit{"T", 0x1p40},   Unit{"B", 1},        Unit{"", 1}};

constexpr std::array kDurations{Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}, Unit{"min", 60},
                                Unit{"m", 60},    Unit{"h", 3600},  Unit{"", 1}};

// A sweep beyond this is a typing mistake, and would fill the memory.
constexpr int64_t kMostValues = 1'000'000;

template <size_t N>
double parse_with_unit(std::string_view text, const std::array<Unit, N>& units,
                       std::string_view kind, std::string_view example, bool whole_ones) {
  const auto fail = [&] {
    return Error(ErrorCode::usage, fmt::format("'{}' is not a {}", text, kind),
                 fmt::format("write it like {}", example));
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) throw fail();
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& candidate : units)
    if (candidate.name == unit) {
      // "*1.5" or "0.5 B" would be rounded to something that nobody meant.
      if (whole_ones && candidate.factor == 1 && number != std::floor(number)) throw fail();
      return number * candidate.factor;
    }
  throw fail();
}

}  // namespace

int64_t parse_size(std::string_view text) {
  const double bytes = parse_with_unit(text, kSizes, "size", "512MiB, 1.5GB or 4096", true);
  if (bytes >= 0x1p63)
    throw Error(ErrorCode::usage, fmt::format("the size '{}' is too large", text));
  return static_cast<int64_t>(std::llround(bytes));
}

std::string format_size(int64_t bytes) {
  static constexpr std::array kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.95 is where one digit would round to "1024.0".
  while (std::abs(value) >= 1023.95 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, kNames[unit]);
  return fmt::format("{:.1f} {}", value, kNames[unit]);
}

double parse_duration(std::string_view text) {
  const double seconds =
      parse_with_unit(text, kDurations, "duration", "250ms, 30s, 5min or 2h", false);
  if (!std::isfinite(seconds))
    throw Error(ErrorCode::usage, fmt::format("the duration '{}' is too long", text));
  return seconds;
}

std::string format_duration(double seconds) {
  if (seconds < 0) return fmt::format("-{}", format_duration(-seconds));
  // The limits are where rounding would reach "1000 us", "1000 ms" or "60.0 s".
  if (seconds < 999.5e-6) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::vector<int64_t> parse_sweep(std::string_view text) {
  const size_t first_colon = text.find(':');
  if (first_colon == std::string_view::npos) return {parse_size(text)};
  const size_t second_colon = text.find(':', first_colon + 1);
  const auto fail = [&] {
    return Error(ErrorCode::usage, fmt::format("'{}' is not a sweep", text),
                 "write it like 1:1024:*2 or 4KiB:64KiB:+4KiB");
  };
  if (second_colon == std::string_view::npos || second_colon + 2 > text.size()) throw fail();
  const int64_t first = parse_size(text.substr(0, first_colon));
  const int64_t last = parse_size(text.substr(first_colon + 1, second_colon - first_colon - 1));
  const char operation = text[second_colon + 1];
  const int64_t step = parse_size(text.substr(second_colon + 2));
  const bool multiplies = operation == '*';
  // A sweep that would not move, or runs backwards, is a typing mistake.
  if ((!multiplies && operation != '+') || step < (multiplies ? 2 : 1) || last < first ||
      (multiplies && first == 0))
    throw fail();
  if (!multiplies && (last - first) / step >= kMostValues)
    throw Error(ErrorCode::usage,
                fmt::format("the sweep '{}' has more than {} values", text, kMostValues),
                "use a larger step, or *2");
  std::vector<int64_t> values;
  for (int64_t value = first; value <= last;) {
    values.push_back(value);
    if (multiplies ? value > last / step : value > last - step) break;
    value = multiplies ? value * step : value + step;
  }
  return values;
}

std::string format_count(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t start = digits.front() == '-' ? 1 : 0;
  for (size_t place = digits.size(); place > start + 3; place -= 3)
    digits.insert(place - 3, 1, ',');
  return digits;
}

}  // namespace renkei
