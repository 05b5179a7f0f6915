#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace renkei {

enum class LogLevel { trace, debug, info, warning, error };

// Every member has an initialiser, so that g++ accepts designated ones for only some of them.
struct LogOptions {
  LogLevel level = LogLevel::warning;  // the least that stderr shows
  int rank = 0;
  std::string host = {};
  std::filesystem::path file = {};  // empty: none. Gets info and above, and less if `level` is less
  bool to_stderr = true;
};

// Where a rank says what it does. A small handle: copies write to the same place, from any thread.
// A default-constructed Logger says nothing, so code can log without asking whether it may.
//
//   in the file   2026-11-15 21:08:52.123 node07 rank 0 info: epoch 2 begins
//   on stderr     [node07:0] warning: the loss is not finite
class Logger {
 public:
  Logger() = default;
  // Throws a data Error when the file cannot be opened.
  explicit Logger(const LogOptions& options);

  // Whether anything would come of a message of this level.
  bool enabled(LogLevel level) const;
  // Each line reaches the operating system at once, so a killed process loses none.
  void log(LogLevel level, std::string_view text) const;

  template <typename... Args>
  void debug(fmt::format_string<Args...> text, Args&&... args) const {
    log_formatted(LogLevel::debug, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) const {
    log_formatted(LogLevel::info, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> text, Args&&... args) const {
    log_formatted(LogLevel::warning, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) const {
    log_formatted(LogLevel::error, text, std::forward<Args>(args)...);
  }

 private:
  template <typename... Args>
  void log_formatted(LogLevel level, fmt::format_string<Args...> text, Args&&... args) const {
    if (enabled(level)) log(level, fmt::format(text, std::forward<Args>(args)...));
  }

  struct Implementation;
  std::shared_ptr<Implementation> implementation_;
};

}  // namespace renkei
