#include "report/tensorboard.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/clock.h"
#include "tests/base/killed_child.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"

namespace renkei::report {
namespace {

using test::kill_in_the_middle;
using test::TemporaryDirectory;
using test::thrown_error;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

void put(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

// The first record has a fixed length, then follow two of 'a'.
std::filesystem::path small_file(const TemporaryDirectory& directory) {
  TensorBoardWriter writer(directory.path());
  writer.scalar("a", 1, 0.5);
  writer.scalar("a", 2, 0.25);
  return writer.path();
}

TEST(TensorBoard, ReadsBackWhatWasWritten) {
  const TemporaryDirectory directory;
  const double before = wall_seconds();
  TensorBoardWriter writer(directory / "new/place");
  writer.scalar("train/loss", 0, 2.302);
  writer.scalar("train/loss", 128, -1e-8);
  writer.scalar("é", int64_t{1} << 40, 3);
  writer.flush();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[0].tag, "");
  EXPECT_EQ(events[1].file_version, "");
  EXPECT_EQ(events[1].tag, "train/loss");
  EXPECT_EQ(events[1].step, 0);
  EXPECT_EQ(events[1].value, 2.302f);
  EXPECT_EQ(events[2].step, 128);
  EXPECT_EQ(events[2].value, -1e-8f);
  EXPECT_EQ(events[3].tag, "é");
  EXPECT_EQ(events[3].step, int64_t{1} << 40);
  for (const Event& event : events) {
    EXPECT_GE(event.wall_time, before);
    EXPECT_LE(event.wall_time, wall_seconds());
  }
}

TEST(TensorBoard, KeepsValuesThatAreNotNumbers) {
  const TemporaryDirectory directory;
  TensorBoardWriter writer(directory.path());
  writer.scalar("loss", 1, std::nan(""));
  writer.scalar("loss", 2, std::numeric_limits<double>::infinity());
  writer.scalar("loss", -3, 0);
  const auto events = read_events(writer.path());
  EXPECT_TRUE(std::isnan(events[1].value));
  EXPECT_TRUE(std::isinf(events[2].value));
  EXPECT_EQ(events[3].step, -3);
}

// These bytes begin every file that TensorFlow writes, whatever the time in it.
TEST(TensorBoard, BeginsWithTheBytesOfTensorFlow) {
  const TemporaryDirectory directory;
  const std::string content = read_file(small_file(directory));
  EXPECT_EQ(content.substr(0, 13), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09", 13));
  EXPECT_EQ(content.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
}

// By hand from the schema: step 300 is the varint ac 02, 0.5f is 00 00 00 3f.
TEST(TensorBoard, EncodesAScalarAsProtobufWants) {
  const TemporaryDirectory directory;
  TensorBoardWriter writer(directory.path());
  writer.scalar("loss", 300, 0.5);
  const std::string content = read_file(writer.path());
  const std::string after_time("\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f", 18);
  ASSERT_EQ(content.size(), 40u + 12 + 9 + after_time.size() + 4);
  EXPECT_EQ(content[40], static_cast<char>(9 + after_time.size()));
  EXPECT_EQ(content.substr(40 + 12 + 9, after_time.size()), after_time);
}

TEST(TensorBoard, NamesItsFileAsTensorBoardExpects) {
  const TemporaryDirectory directory;
  const TensorBoardWriter first(directory.path());
  EXPECT_THAT(
      first.path().filename().string(),
      MatchesRegex("events\\.out\\.tfevents\\.[0-9]{10}\\..+\\." + std::to_string(getpid())));
}

TEST(TensorBoard, TwoWritersHaveTwoFiles) {
  const TemporaryDirectory directory;
  TensorBoardWriter first(directory.path()), second(directory.path());
  EXPECT_NE(first.path(), second.path());
  first.scalar("a", 1, 1);
  EXPECT_EQ(read_events(first.path()).size(), 2u);
  EXPECT_EQ(read_events(second.path()).size(), 1u);
}

TEST(TensorBoard, PassesOverATornLastRecordWhereverItWasCut) {
  const TemporaryDirectory directory;
  const auto path = small_file(directory);
  const std::string whole = read_file(path);
  // 40 bytes for the version; a scalar has 16 of frame, 9 of time, 2 of step and 12 of summary.
  ASSERT_EQ(whole.size(), 40u + 39 + 39);
  for (size_t size = 0; size <= whole.size(); ++size) {
    put(path, whole.substr(0, size));
    const size_t expected = size < 40 ? 0 : size < 79 ? 1 : size < 118 ? 2 : 3;
    ASSERT_EQ(read_events(path).size(), expected) << "cut at " << size;
  }
}

TEST(TensorBoard, NoticesEveryDamagedByte) {
  const TemporaryDirectory directory;
  const auto path = small_file(directory);
  const std::string whole = read_file(path);
  for (size_t place = 0; place < whole.size(); ++place) {
    std::string damaged = whole;
    damaged[place] ^= 0x10;
    put(path, damaged);
    const Error error = thrown_error([&] { read_events(path); });
    ASSERT_EQ(error.code, ErrorCode::data) << "at byte " << place;
    const std::string record = place < 40 ? "byte 0 " : place < 79 ? "byte 40 " : "byte 79 ";
    ASSERT_THAT(error.message, AllOf(HasSubstr(path.string()), HasSubstr(record)));
  }
}

TEST(TensorBoard, LosesAtMostTheLastRecordWhenTheWriterIsKilled) {
  for (int kill = 0; kill < 5; ++kill) {
    const TemporaryDirectory directory;
    const auto write_on = [&] {
      TensorBoardWriter writer(directory.path());
      const std::string tag(100'000, 't');
      for (int64_t step = 1; step < 100'000; ++step) writer.scalar(tag, step, 1);
    };
    const auto file = [&] {
      const std::filesystem::directory_iterator first(directory.path());
      return first == std::filesystem::directory_iterator() ? "" : first->path();
    };
    const auto started = [&] {
      return !file().empty() && std::filesystem::file_size(file()) > 200'000;
    };
    ASSERT_TRUE(kill_in_the_middle(write_on, started, kill * 500));
    const auto events = read_events(file());
    ASSERT_GE(events.size(), 2u);
    for (size_t place = 0; place < events.size(); ++place)
      ASSERT_EQ(events[place].step, static_cast<int64_t>(place));
  }
}

TEST(TensorBoard, NamesADirectoryThatItCannotWriteTo) {
  EXPECT_EQ(thrown_error([] { TensorBoardWriter("/proc/no/such"); }).code, ErrorCode::data);
  EXPECT_THAT(thrown_error([] { read_events("/no/such/events"); }).message,
              HasSubstr("/no/such/events"));
}

}  // namespace
}  // namespace renkei::report
