#include "cli/failure.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/secrets.h"
#include "base/version.h"

namespace renkei::cli {

bool has_printed_result(const std::exception& exception) {
  return dynamic_cast<const FailedResult*>(&exception) != nullptr;
}

Error as_error(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  const std::string text = exception.what();
  const std::string first_line = text.substr(0, text.find('\n'));
  const bool out_of_memory = dynamic_cast<const std::bad_alloc*>(&exception) ||
                             text.find("can't allocate memory") != std::string::npos;
  if (out_of_memory)
    return Error(ErrorCode::memory, "this rank is out of memory: " + first_line,
                 "use a smaller --batch, more --micro-batches or more ranks");
  if (text.starts_with("cannot write to file"))
    return Error(ErrorCode::data, "could not write to stdout" + text.substr(text.find(':')),
                 "the output is not complete: choose another place for it");
  if (text.find("invalid UTF-8 byte") != std::string::npos)
    return Error(ErrorCode::usage, "a name that would be printed is not valid UTF-8",
                 "rename the file, or leave --json out");
  return Error(ErrorCode::bug, first_line, "this is a bug in renkei: please report it");
}

std::string failure_as_json(const Error& error, const std::string& command) {
  nlohmann::json body{{"code", name_of(error.code)},
                      {"message", without_secrets(error.message)},
                      {"hint", without_secrets(error.hint)},
                      {"rank", nullptr},
                      {"host", nullptr},
                      {"step", nullptr}};
  if (error.rank) body["rank"] = *error.rank;
  if (!error.host.empty()) body["host"] = error.host;
  if (error.step) body["step"] = *error.step;
  return nlohmann::json{{"command", command}, {"version", kVersion}, {"error", body}}.dump(
      2, ' ', false, nlohmann::json::error_handler_t::replace);
}

void tell_user(const Error& error, const std::string& command, bool json) {
  if (json) fmt::print("{}\n", failure_as_json(error, command));
  fmt::print(stderr, "{}\n", format_for_people(error));
  std::fflush(nullptr);
}

void write_failure_file(const std::filesystem::path& run_directory, const Error& error,
                        const std::string& command) {
  if (run_directory.empty()) return;
  try {
    write_file_atomically(run_directory / "failure.json", failure_as_json(error, command) + "\n");
  } catch (const Error&) {
    // The first failure is what matters, and it has been told.
  }
}

}  // namespace renkei::cli
