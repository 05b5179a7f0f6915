#include "report/table.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace renkei::report {
namespace {

struct Character {
  char32_t code;
  size_t bytes;
};

// Of a text that is not empty. A byte that fits nowhere is a character by itself.
Character first_character(std::string_view text) {
  const auto byte = static_cast<uint8_t>(text[0]);
  const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
  if (length == 1 || text.size() < length) return {byte, 1};
  char32_t code = byte & (0x7F >> length);
  for (size_t place = 1; place < length; ++place) {
    const auto next = static_cast<uint8_t>(text[place]);
    if ((next & 0xC0) != 0x80) return {byte, 1};
    code = code << 6 | (next & 0x3F);
  }
  return {code, length};
}

struct Range {
  char32_t first, last;
};

// The large blocks only: enough for names in East Asian scripts and for symbols, not for all of
// Unicode.
constexpr std::array kWide{Range{0x1100, 0x115F}, Range{0x2E80, 0xA4CF},   Range{0xAC00, 0xD7A3},
                           Range{0xF900, 0xFAFF}, Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},
                           Range{0xFFE0, 0xFFE6}, Range{0x1F300, 0x1FAFF}, Range{0x20000, 0x3FFFD}};
constexpr std::array kCombining{Range{0x0300, 0x036F}, Range{0x200B, 0x200D}, Range{0x20D0, 0x20FF},
                                Range{0xFE00, 0xFE0F}};

int width_of(char32_t code) {
  const auto holds = [&](const Range& range) { return code >= range.first && code <= range.last; };
  if (std::ranges::any_of(kCombining, holds)) return 0;
  return std::ranges::any_of(kWide, holds) ? 2 : 1;
}

std::string aligned(std::string_view text, int width, Align align) {
  const std::string blanks(static_cast<size_t>(width - display_width(text)), ' ');
  return align == Align::left ? std::string(text) + blanks : blanks + std::string(text);
}

}  // namespace

int display_width(std::string_view utf8) {
  int width = 0;
  while (!utf8.empty()) {
    const Character character = first_character(utf8);
    width += width_of(character.code);
    utf8.remove_prefix(character.bytes);
  }
  return width;
}

std::string_view cut_to_width(std::string_view utf8, int width) {
  size_t bytes = 0;
  while (bytes < utf8.size()) {
    const Character character = first_character(utf8.substr(bytes));
    width -= width_of(character.code);
    if (width < 0) break;
    bytes += character.bytes;
  }
  return utf8.substr(0, bytes);
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size())
    throw Error(ErrorCode::bug, fmt::format("a row of {} cells in a table of {} columns",
                                            cells.size(), columns_.size()));
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::string> titles, rules;
  std::vector<int> widths;
  for (size_t place = 0; place < columns_.size(); ++place) {
    int width = display_width(columns_[place].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[place]));
    widths.push_back(width);
    titles.push_back(columns_[place].title);
    rules.emplace_back(static_cast<size_t>(width), '-');
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t place = 0; place < cells.size(); ++place)
      line += (place ? "  " : "") + aligned(cells[place], widths[place], columns_[place].align);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  add_line(titles);
  add_line(rules);
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace renkei::report
