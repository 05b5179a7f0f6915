#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace renkei::report {

enum class Align { left, right };

struct Column {
  std::string title = {};
  Align align = Align::left;
};

// A table for people:
//
//   algorithm       size    time
//   ---------  ---------  ------
//   ring         64 MiB   12 ms
//
// Lines have no blanks at their end and finish with a line break.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // One cell for each column.
  void add_row(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// How many columns of a terminal a UTF-8 text takes: "×" and "é" one each (also when é is e and a
// combining accent), "連" two. A byte that is not UTF-8 takes one.
int display_width(std::string_view utf8);

// The longest beginning that is not wider than `width`; never cuts a character in two.
std::string_view cut_to_width(std::string_view utf8, int width);

}  // namespace renkei::report
