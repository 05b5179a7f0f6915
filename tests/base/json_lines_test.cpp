#include "base/json_lines.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/base/killed_child.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"

namespace renkei {
namespace {

using test::kill_in_the_middle;
using test::TemporaryDirectory;
using test::thrown_error;
using testing::AllOf;
using testing::HasSubstr;

void put(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST(JsonLines, ReadsBackWhatWasAppended) {
  const TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  JsonLinesWriter(path).append(R"({"step":1,"loss":0.5})");
  JsonLinesWriter writer(path);
  writer.append(R"({"text":"two\nlines, é"})");
  writer.append("{}");
  EXPECT_EQ(read_file(path), "{\"step\":1,\"loss\":0.5}\n{\"text\":\"two\\nlines, é\"}\n{}\n");
  const auto lines = read_json_lines(path);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["loss"], 0.5);
  EXPECT_EQ(lines[1]["text"], "two\nlines, é");
  EXPECT_TRUE(lines[2].empty());
}

TEST(JsonLines, WritesEachLineAtOnce) {
  const TemporaryDirectory directory;
  JsonLinesWriter writer(directory / "file");
  writer.append("{}");
  EXPECT_EQ(read_json_lines(directory / "file").size(), 1u);
}

TEST(JsonLines, AnEmptyFileHasNoLines) {
  const TemporaryDirectory directory;
  const JsonLinesWriter writer(directory / "file");
  EXPECT_TRUE(read_json_lines(directory / "file").empty());
}

TEST(JsonLines, PassesOverATornLastLineWhereverItWasCut) {
  const TemporaryDirectory directory;
  const std::string whole = "{\"step\":1}\n{\"step\":2}\n";
  for (size_t size = 0; size <= whole.size(); ++size) {
    put(directory / "file", whole.substr(0, size));
    // A line is there as soon as its object is, even without the end of the line.
    const size_t expected = size < 10 ? 0 : size < 21 ? 1 : 2;
    EXPECT_EQ(read_json_lines(directory / "file").size(), expected) << "cut at " << size;
  }
}

TEST(JsonLines, MendsATornLastLineBeforeAppending) {
  const TemporaryDirectory directory;
  const std::string whole = "{\"step\":1}\n{\"step\":2}\n";
  for (size_t size = 0; size <= whole.size(); ++size) {
    put(directory / "file", whole.substr(0, size));
    const size_t before = read_json_lines(directory / "file").size();
    JsonLinesWriter(directory / "file").append(R"({"step":9})");
    const auto lines = read_json_lines(directory / "file");
    ASSERT_EQ(lines.size(), before + 1) << "cut at " << size;
    EXPECT_EQ(lines.back()["step"], 9);
    EXPECT_EQ(read_file(directory / "file").size(), 11 * (before + 1));
  }
}

TEST(JsonLines, MendsATornLineThatIsLongerThanABlock) {
  const TemporaryDirectory directory;
  for (size_t torn : {65535, 65536, 65537, 300000}) {
    put(directory / "file", "{\"step\":1}\n{\"x\":\"" + std::string(torn, 'x'));
    JsonLinesWriter(directory / "file").append("{}");
    EXPECT_EQ(read_file(directory / "file"), "{\"step\":1}\n{}\n");
  }
}

TEST(JsonLines, LosesAtMostTheLastLineWhenTheWriterIsKilled) {
  const TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  JsonLinesWriter(path).append(R"({"line":0})");
  // Large lines that cost nothing but their write, so that the signal arrives within one.
  const std::string padding(1'000'000, 'x');
  size_t lines = 1;
  for (int kill = 0; kill < 10; ++kill) {
    const auto write_on = [&] {
      JsonLinesWriter writer(path);
      for (size_t line = lines; line < lines + 1000; ++line)
        writer.append("{\"line\":" + std::to_string(line) + ",\"padding\":\"" + padding + "\"}");
    };
    const uint64_t size_bytes = std::filesystem::file_size(path);
    const auto started = [&] { return std::filesystem::file_size(path) > size_bytes; };
    ASSERT_TRUE(kill_in_the_middle(write_on, started, kill * 100));
    size_t number = 0;
    read_json_lines(path, [&](const nlohmann::json& line) { ASSERT_EQ(line["line"], number++); });
    ASSERT_GE(number, lines);
    lines = number;
  }
  EXPECT_GT(lines, 1u);
}

TEST(JsonLines, ReportsABrokenLineInTheMiddleWithItsNumber) {
  const TemporaryDirectory directory;
  for (const char* broken : {"{\"step\":", "", "12", "[1]", "{} {}", "nonsense", "\xFF"}) {
    put(directory / "file.jsonl", std::string("{}\n{}\n") + broken + "\n{}\n");
    const Error error = thrown_error([&] { read_json_lines(directory / "file.jsonl"); });
    EXPECT_EQ(error.code, ErrorCode::data) << broken;
    EXPECT_THAT(error.message, AllOf(HasSubstr("line 3"), HasSubstr("file.jsonl"))) << broken;
  }
}

TEST(JsonLines, ReportsABrokenLastLineThatIsNotTorn) {
  const TemporaryDirectory directory;
  put(directory / "file", "{}\n{\"step\":\n");
  EXPECT_THAT(thrown_error([&] { read_json_lines(directory / "file"); }).message,
              HasSubstr("line 2"));
}

TEST(JsonLines, RefusesARecordThatWouldBreakTheFile) {
  const TemporaryDirectory directory;
  JsonLinesWriter writer(directory / "file");
  for (const char* record : {"", "{\n}", "{}\n"})
    EXPECT_EQ(thrown_error([&] { writer.append(record); }).code, ErrorCode::bug);
  EXPECT_EQ(read_file(directory / "file"), "");
}

TEST(JsonLines, NamesAFileThatItCannotReadOrWrite) {
  const TemporaryDirectory directory;
  EXPECT_THAT(thrown_error([&] { read_json_lines(directory / "missing"); }).message,
              AllOf(HasSubstr("missing"), HasSubstr("No such file")));
  EXPECT_THAT(thrown_error([&] { read_json_lines(directory.path()); }).message,
              HasSubstr("Is a directory"));
  EXPECT_THAT(thrown_error([&] { JsonLinesWriter(directory / "no/such"); }).message,
              HasSubstr("no/such"));
  EXPECT_THAT(thrown_error([&] { JsonLinesWriter("/dev/full").append("{}"); }).hint,
              HasSubstr("free some space"));
}

}  // namespace
}  // namespace renkei
