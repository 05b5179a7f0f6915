// What a parser may do with bytes from nowhere.
#pragma once

#include <string_view>

#include "base/error.h"

namespace renkei {

// It must end well or throw a data Error.
template <typename Parse>
void expect_no_other_error(Parse parse, std::string_view bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    if (error.code != ErrorCode::data) throw;
  }
}

}  // namespace renkei
