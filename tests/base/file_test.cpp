#include "base/file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <functional>
#include <iterator>
#include <string>

#include "tests/base/killed_child.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"

namespace renkei {
namespace {

using test::kill_in_the_middle;
using test::run_in_child;
using test::TemporaryDirectory;
using test::thrown_error;
using testing::AllOf;
using testing::HasSubstr;

size_t entries_in(const std::filesystem::path& directory) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST(WriteFileAtomically, LeavesTheContentAndNothingElse) {
  const TemporaryDirectory directory;
  for (size_t size : {0, 1, 4096, 1000003}) {
    const std::string content(size, '\0');
    write_file_atomically(directory / "file", content);
    EXPECT_EQ(read_file(directory / "file"), content);
  }
  EXPECT_EQ(entries_in(directory.path()), 1u);
}

TEST(WriteFileAtomically, ShowsReadersTheOldOrTheNewContentWhenItsProcessIsKilled) {
  const TemporaryDirectory directory;
  const auto path = directory / "file";
  constexpr size_t kSize = 1 << 20;
  const auto rewrite = [&] {
    for (char letter = 'a'; letter <= 'z'; ++letter)
      write_file_atomically(path, std::string(kSize, letter));
  };
  const auto started = [&] { return std::filesystem::exists(path); };
  for (int kill = 0; kill < 20; ++kill) {
    ASSERT_TRUE(kill_in_the_middle(rewrite, started, kill * 700));
    const std::string content = read_file(path);
    ASSERT_EQ(content.size(), kSize);
    ASSERT_EQ(content, std::string(kSize, content.front()));
  }
}

TEST(WriteFileAtomically, NamesTheFileAndTheReasonWhenItCannot) {
  const TemporaryDirectory directory;
  const Error error = thrown_error([&] { write_file_atomically(directory / "no/such", "x"); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_THAT(error.message, AllOf(HasSubstr("no/such"), HasSubstr("No such file")));
  EXPECT_EQ(error.hint, "check the path");
}

TEST(WriteFileAtomically, TakesAwayItsPartWhenItCannotRename) {
  const TemporaryDirectory directory;
  make_directories(directory / "taken");
  EXPECT_EQ(thrown_error([&] { write_file_atomically(directory / "taken", "x"); }).code,
            ErrorCode::data);
  EXPECT_EQ(entries_in(directory.path()), 1u);
}

// Runs `work` while no file may grow beyond `bytes`, as on a disk that is full.
int run_with_little_space(rlim_t bytes, const std::function<void()>& work) {
  return run_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    work();
  });
}

TEST(WriteFileAtomically, KeepsTheOldContentWhenThereIsNoSpace) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "old");
  const int status = run_with_little_space(1000, [&] {
    try {
      write_file_atomically(directory / "file", std::string(5000, 'x'));
    } catch (const Error&) {
      ::_exit(7);
    }
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(directory / "file"), "old");
  EXPECT_EQ(entries_in(directory.path()), 1u);
}

TEST(ReadFile, NamesAFileThatIsMissingOrADirectory) {
  const TemporaryDirectory directory;
  EXPECT_THAT(thrown_error([&] { read_file(directory / "missing"); }).message,
              AllOf(HasSubstr("missing"), HasSubstr("No such file")));
  EXPECT_THAT(thrown_error([&] { read_file(directory.path()); }).message,
              HasSubstr("Is a directory"));
}

TEST(ReadFile, DoesNotTakeAReadErrorForTheEnd) {
  // Address zero of a process is not mapped, so reading there fails.
  EXPECT_THAT(thrown_error([] { read_file("/proc/self/mem"); }).message,
              HasSubstr("Input/output error"));
}

TEST(ReadFile, ReadsFilesThatDoNotKnowTheirSize) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Pid:"));
}

TEST(MakeDirectories, MakesParentsAndAcceptsWhatExists) {
  const TemporaryDirectory directory;
  make_directories(directory / "a/b/c");
  make_directories(directory / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(directory / "a/b/c"));
}

TEST(MakeDirectories, SaysWhichPathIsInTheWay) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "");
  EXPECT_THAT(thrown_error([&] { make_directories(directory / "file/below"); }).message,
              HasSubstr("file/below"));
}

TEST(AppendFile, GoesOnAtTheEnd) {
  const TemporaryDirectory directory;
  AppendFile(directory / "file").append("one ");
  AppendFile file(directory / "file");
  file.append("two ");
  AppendFile moved(std::move(file));
  moved.append("");
  moved.append("three");
  moved.sync();
  EXPECT_EQ(moved.path(), directory / "file");
  EXPECT_EQ(read_file(directory / "file"), "one two three");
  moved.cut(4);
  moved.append("more");
  EXPECT_EQ(read_file(directory / "file"), "one more");
}

TEST(AppendFile, TakesBackAnAppendForWhichThereIsNoSpace) {
  const TemporaryDirectory directory;
  const int status = run_with_little_space(1000, [&] {
    AppendFile file(directory / "file");
    file.append(std::string(900, 'a'));
    try {
      file.append(std::string(200, 'b'));
    } catch (const Error&) {
      file.append("fits");
      ::_exit(7);
    }
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(directory / "file"), std::string(900, 'a') + "fits");
}

TEST(AppendFile, HintsWhatToDoAboutAFullDisk) {
  const Error error = thrown_error([] { AppendFile("/dev/full").append("x"); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_THAT(error.message, HasSubstr("/dev/full"));
  EXPECT_THAT(error.hint, HasSubstr("free some space"));
}

}  // namespace
}  // namespace renkei
