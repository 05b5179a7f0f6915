#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace renkei {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
      return spdlog::level::trace;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// A host name goes into a pattern, where a percent sign would start a field.
std::string as_pattern(std::string_view text) {
  std::string pattern;
  for (const char character : text) pattern += character == '%' ? "%%" : std::string(1, character);
  return pattern;
}

spdlog::sink_ptr file_sink(const LogOptions& options) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file.string());
    // What is asked after a failure is in the file, even when nobody wanted it on the screen.
    sink->set_level(to_spdlog(std::min(options.level, LogLevel::info)));
    sink->set_pattern(fmt::format("%Y-%m-%d %H:%M:%S.%e {} rank {} %l: %v",
                                  as_pattern(options.host), options.rank));
    return sink;
  } catch (const spdlog::spdlog_ex& reason) {
    throw Error(ErrorCode::data,
                fmt::format("could not open the log {}: {}", options.file.string(), reason.what()),
                "choose a directory that you may write to");
  }
}

spdlog::sink_ptr stderr_sink(const LogOptions& options) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sink->set_level(to_spdlog(options.level));
  // On a terminal a progress bar may stand in the line; it is erased here and redraws itself below.
  const char* erase = ::isatty(STDERR_FILENO) ? "\r\x1b[K" : "";
  sink->set_pattern(fmt::format("{}[{}:{}] %l: %v", erase, as_pattern(options.host), options.rank));
  return sink;
}

}  // namespace

struct Logger::Implementation {
  spdlog::logger logger;
};

Logger::Logger(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks;
  if (!options.file.empty()) sinks.push_back(file_sink(options));
  if (options.to_stderr) sinks.push_back(stderr_sink(options));
  if (sinks.empty()) return;
  auto least = spdlog::level::off;
  for (const auto& sink : sinks) least = std::min(least, sink->level());
  // Made by hand: spdlog's factories would put it into a global registry.
  implementation_ = std::make_shared<Implementation>(
      Implementation{spdlog::logger("renkei", sinks.begin(), sinks.end())});
  implementation_->logger.set_level(least);
  implementation_->logger.flush_on(spdlog::level::trace);
}

bool Logger::enabled(LogLevel level) const {
  return implementation_ && implementation_->logger.should_log(to_spdlog(level));
}

void Logger::log(LogLevel level, std::string_view text) const {
  if (implementation_)
    implementation_->logger.log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace renkei
