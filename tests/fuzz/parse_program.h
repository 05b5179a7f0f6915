// A program or a size from nowhere: read, and used as its readers would.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "program/memory.h"
#include "program/modes.h"
#include "program/print.h"
#include "program/program_json.h"
#include "program/work.h"
#include "tests/fuzz/expect.h"

namespace renkei::program {

inline void parse_size(std::string_view text) {
  const Size size = Size::expression(std::string(text));
  if (!size.is_number() && Size::expression(size.text()) != size)
    throw std::logic_error("the normal form of a size has another normal form");
  size.value({{"batch", 7}, {"s0", 3}});
}

inline void parse_program(std::string_view text) {
  expect_no_other_error(parse_size, text);
  Program program = from_json(text, "file");
  const std::string json = to_json(program);
  if (to_json(from_json(json, "again")) != json)
    throw std::logic_error("a program is another one when written and read");
  print(program);
  const SymbolValues symbols = with_batch(program, 3);
  for (const Op& op : program.ops)
    expect_no_other_error([&](std::string_view) { work_of(program, op, symbols); }, {});
  expect_no_other_error([&](std::string_view) { check(evaluation(program), "evaluation"); }, {});
  remove_dead_ops(program);
  check(program, "without dead operations");
}

}  // namespace renkei::program
