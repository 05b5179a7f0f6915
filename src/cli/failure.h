// How a failure is told: one sentence on stderr, or with --json one object on stdout; in the run
// directory as failure.json; and to the supervisor, where there is one, which then speaks for all.
#pragma once

#include <exception>
#include <filesystem>

#include "base/error.h"

namespace renkei::cli {

// A check that failed after its result was printed, which with --json is the one object of stdout.
class FailedResult : public Error {
 public:
  explicit FailedResult(std::string message, std::string hint = "")
      : Error(ErrorCode::check, std::move(message), std::move(hint)) {}
};
bool has_printed_result(const std::exception& exception);

// Any exception as an Error: Torch's and the standard library's become one with a code.
Error as_error(const std::exception& exception);

// {"command", "version", "error": {"code", "message", "hint", "rank", "host", "step"}}
std::string failure_as_json(const Error& error, const std::string& command);

void tell_user(const Error& error, const std::string& command, bool json);

void write_failure_file(const std::filesystem::path& run_directory, const Error& error,
                        const std::string& command);

}  // namespace renkei::cli
