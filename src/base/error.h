#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace renkei {

// What went wrong, as a caller or a script needs to know it. The value is the exit code of the
// process (documented in docs/errors.md), so it never changes.
enum class ErrorCode {
  check = 1,          // a check or a comparison failed
  usage = 2,          // a flag, a setting or a combination of them
  data = 3,           // a file or a sample
  communication = 4,  // a rank was lost, late or called something else
  memory = 5,         // out of (device) memory
  bug = 70,           // never the user's fault
};

std::string_view name_of(ErrorCode code);

// The only exception that Renkei throws on purpose. `message` is one sentence that says what
// happened and where; `hint` says what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string message, std::string hint = "")
      : std::runtime_error(message),
        code(code),
        message(std::move(message)),
        hint(std::move(hint)) {}

  int exit_code() const { return static_cast<int>(code); }

  ErrorCode code;
  std::string message;
  std::string hint;
  std::optional<int> rank;      // the rank that is to blame, where one is
  std::string host;             // and its host
  std::optional<int64_t> step;  // the training step in which it happened
};

// "error: MESSAGE\n  hint: HINT", as people see it.
std::string format_for_people(const Error& error);

}  // namespace renkei
