#include "base/log.h"

#include <gmock/gmock.h>

#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/file.h"
#include "tests/base/killed_child.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"

namespace renkei {
namespace {

using test::run_in_child;
using test::TemporaryDirectory;
using test::thrown_error;
using testing::HasSubstr;
using testing::MatchesRegex;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What `work` writes to stderr.
std::string stderr_of(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

void log_at_every_level(const Logger& log) {
  log.log(LogLevel::trace, "tiny");
  log.debug("small {}", 1);
  log.info("middle {}", 2);
  log.warning("large {}", 3);
  log.error("huge {}", 4);
}

TEST(Logger, WritesTimeHostRankAndLevelToTheFile) {
  const TemporaryDirectory directory;
  const Logger log({.rank = 12, .host = "node%07", .file = directory / "log", .to_stderr = false});
  log.info("epoch {} begins", 2);
  EXPECT_THAT(
      read_file(directory / "log"),
      MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3} node%07 "
                   "rank 12 info: epoch 2 begins\n"));
}

TEST(Logger, NamesHostAndRankOnStderr) {
  const Logger log({.rank = 3, .host = "node07"});
  EXPECT_EQ(stderr_of([&] { log_at_every_level(log); }),
            "[node07:3] warning: large 3\n[node07:3] error: huge 4\n");
}

TEST(Logger, ShowsOnStderrWhatTheLevelAsksFor) {
  const std::vector<std::pair<LogLevel, size_t>> expected{{LogLevel::trace, 5},
                                                          {LogLevel::debug, 4},
                                                          {LogLevel::info, 3},
                                                          {LogLevel::warning, 2},
                                                          {LogLevel::error, 1}};
  for (const auto& [level, count] : expected) {
    const Logger log({.level = level, .host = "h"});
    EXPECT_EQ(lines_of(stderr_of([&] { log_at_every_level(log); })).size(), count);
  }
}

TEST(Logger, KeepsInfoInTheFileWhateverStderrShows) {
  const TemporaryDirectory directory;
  const Logger quiet({.level = LogLevel::error, .host = "h", .file = directory / "quiet"});
  EXPECT_EQ(lines_of(stderr_of([&] { log_at_every_level(quiet); })).size(), 1u);
  EXPECT_EQ(lines_of(read_file(directory / "quiet")).size(), 3u);

  const Logger loud(
      {.level = LogLevel::trace, .host = "h", .file = directory / "loud", .to_stderr = false});
  EXPECT_EQ(stderr_of([&] { log_at_every_level(loud); }), "");
  EXPECT_EQ(lines_of(read_file(directory / "loud")).size(), 5u);
}

TEST(Logger, IsSilentWhenItWasNotTold) {
  const Logger log;
  EXPECT_EQ(stderr_of([&] { log_at_every_level(log); }), "");
  EXPECT_FALSE(log.enabled(LogLevel::error));
}

TEST(Logger, KnowsWhatItWouldShow) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(Logger({.host = "h"}).enabled(LogLevel::info));
  EXPECT_TRUE(Logger({.host = "h"}).enabled(LogLevel::warning));
  const Logger with_file({.host = "h", .file = directory / "log"});
  EXPECT_TRUE(with_file.enabled(LogLevel::info));
  EXPECT_FALSE(with_file.enabled(LogLevel::debug));
}

TEST(Logger, DoesNotTakeTextForAFormat) {
  const Logger log({.host = "h"});
  EXPECT_EQ(stderr_of([&] { log.log(LogLevel::error, "{} %v {broken"); }),
            "[h:0] error: {} %v {broken\n");
}

TEST(Logger, AppendsToTheFileOfAnEarlierRunAndMakesItsDirectory) {
  const TemporaryDirectory directory;
  const LogOptions options{.host = "h", .file = directory / "logs/rank-0.log", .to_stderr = false};
  Logger(options).info("first");
  Logger(options).info("second");
  EXPECT_EQ(lines_of(read_file(options.file)).size(), 2u);
}

TEST(Logger, HasWrittenEveryLineWhenItsProcessIsKilled) {
  const TemporaryDirectory directory;
  const int status = run_in_child([&] {
    const Logger log({.host = "h", .file = directory / "log", .to_stderr = false});
    for (int line = 0; line < 100; ++line) log.info("line {}", line);
    ::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto lines = lines_of(read_file(directory / "log"));
  ASSERT_EQ(lines.size(), 100u);
  EXPECT_THAT(lines.back(), HasSubstr("info: line 99"));
}

TEST(Logger, KeepsLinesOfThreadsWhole) {
  const TemporaryDirectory directory;
  const Logger log({.host = "h", .file = directory / "log", .to_stderr = false});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([copy = log] {
      for (int line = 0; line < 250; ++line) copy.info("{}", std::string(200, 'x'));
    });
  for (std::thread& thread : threads) thread.join();
  const auto lines = lines_of(read_file(directory / "log"));
  ASSERT_EQ(lines.size(), 1000u);
  for (const std::string& line : lines)
    ASSERT_EQ(line.substr(23), " h rank 0 info: " + std::string(200, 'x'));
}

TEST(Logger, NamesAFileThatItCannotOpen) {
  const Error error = thrown_error([] { Logger({.host = "h", .file = "/proc/no/such.log"}); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_THAT(error.message, HasSubstr("/proc/no/such.log"));
}

}  // namespace
}  // namespace renkei
