// Hosts are threads with names; each has a directory of its own.
#include "staging/stage.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/philox.h"
#include "comm/transport/thread_transport.h"
#include "tests/data/expect_error.h"
#include "tests/data/temporary_directory.h"
#include "tests/data/write_file.h"

namespace renkei::staging {
namespace {

namespace fs = std::filesystem;

using data::expect_error;

std::string noise(size_t bytes, uint64_t seed) {
  Random random(1, RandomUse::synth_image, 0, seed);
  std::string text(bytes, '\0');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

class StageTest : public testing::Test {
 protected:
  // Files of many sizes, empty and nested ones too; about 20 blocks of 1000 bytes.
  StageTest() {
    const std::vector<std::pair<std::string, size_t>> files{
        {"a.bin", 7'777}, {"b/c/d.bin", 1}, {"b/e.bin", 0},   {"b/f.bin", 1'000},
        {"g.bin", 2'500}, {"h.bin", 0},     {"i.bin", 9'001}, {"j/k.bin", 13}};
    for (size_t i = 0; i < files.size(); ++i)
      data::write_test_file(source() / files[i].first, noise(files[i].second, i));
  }

  fs::path source() const { return root_.path() / "source"; }
  fs::path area(const std::string& host) const { return root_.path() / host / "set"; }

  StageOptions options() const {
    return {.source = source().string(),
            .directory = (root_.path() / "{host}" / "set").string(),
            .block_bytes = 1'000,
            .threads = 2};
  }

  StageResult run(const std::vector<std::string>& hosts, const StageOptions& options) const {
    StageResult result;
    comm::run_as_threads(static_cast<int>(hosts.size()),
                         [&](comm::Transport& transport) {
                           const StageResult mine = stage(transport, options);
                           if (transport.rank() == 0) result = mine;
                         },
                         {.hosts = hosts});
    return result;
  }

  // Everything that is at the source, and nothing else but the records.
  void expect_copy(const std::string& host) const {
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(source())) {
      if (!entry.is_regular_file()) continue;
      const fs::path name = fs::relative(entry.path(), source());
      ASSERT_TRUE(fs::exists(area(host) / name)) << name;
      EXPECT_TRUE(read_file(entry.path()) == read_file(area(host) / name)) << name;
      ++files;
    }
    for (const auto& entry : fs::recursive_directory_iterator(area(host)))
      if (entry.is_regular_file()) --files;
    EXPECT_EQ(files, -3);  // stage.json, stage.journal, stage.lock
  }

  static constexpr int64_t kBytes = 7'777 + 1 + 1'000 + 2'500 + 9'001 + 13;
  data::TemporaryDirectory root_;
};

TEST_F(StageTest, EachByteIsReadOnceForAnyNumberOfHostsAndRanks) {
  const std::vector<std::vector<std::string>> jobs{
      {"a"}, {"a", "a", "a"}, {"a", "b"}, {"a", "b", "a", "b", "c"}};
  for (const auto& hosts : jobs) {
    for (const char* host : {"a", "b", "c"}) fs::remove_all(area(host));
    const StageResult result = run(hosts, options());
    EXPECT_EQ(result.files, 8);
    EXPECT_EQ(result.bytes, kBytes);
    EXPECT_EQ(result.read_bytes, kBytes);
    EXPECT_EQ(result.copied_bytes, 0);
    for (const std::string& host : hosts) expect_copy(host);
  }
}

TEST_F(StageTest, WhatIsThereIsNotReadAgain) {
  const StageResult first = run({"a", "b"}, options());
  const StageResult second = run({"a", "b"}, options());
  EXPECT_EQ(second.read_bytes, 0);
  EXPECT_EQ(second.checksum, first.checksum);
  expect_copy("a");
}

TEST_F(StageTest, ANewHostIsServedByTheOthers) {
  run({"a", "b"}, options());
  const StageResult result = run({"new", "a", "b"}, options());
  EXPECT_EQ(result.read_bytes, 0);
  EXPECT_EQ(result.copied_bytes, kBytes);
  expect_copy("new");
}

TEST_F(StageTest, AnInterruptedRunIsContinued) {
  StageOptions interrupted = options();
  interrupted.progress = [](int64_t done, int64_t) {
    if (done >= 8'000) throw Error(ErrorCode::data, "interrupted", "not really");
  };
  EXPECT_THROW(run({"a", "b"}, interrupted), Error);
  EXPECT_FALSE(fs::exists(area("a") / "stage.json"));
  EXPECT_FALSE(fs::exists(area("a") / "a.bin"));  // not before everything is there
  const StageResult result = run({"a", "b"}, options());
  EXPECT_LE(result.read_bytes, kBytes - 6'000);
  EXPECT_GT(result.read_bytes, 0);
  expect_copy("a");
  expect_copy("b");
}

TEST_F(StageTest, DamagedBlocksOfAnInterruptedRunAreCopiedAgain) {
  StageOptions interrupted = options();
  interrupted.progress = [](int64_t done, int64_t) {
    if (done >= 8'000) throw Error(ErrorCode::data, "interrupted", "not really");
  };
  EXPECT_THROW(run({"a"}, interrupted), Error);
  std::string content = read_file(area("a") / "a.bin.partial");
  content[2'500] = static_cast<char>(content[2'500] ^ 1);
  data::write_test_file(area("a") / "a.bin.partial", content);
  data::write_test_file(area("a") / "stage.journal",
                        read_file(area("a") / "stage.journal") + "5 1234");  // torn
  run({"a"}, options());
  expect_copy("a");
}

TEST_F(StageTest, AFileThatVanishedComesBack) {
  run({"a", "b"}, options());
  fs::remove(area("a") / "i.bin");
  fs::resize_file(area("a") / "g.bin", 100);
  const StageResult result = run({"a", "b"}, options());
  EXPECT_EQ(result.read_bytes, 0);  // host b has it
  EXPECT_GT(result.copied_bytes, 0);
  expect_copy("a");
}

TEST_F(StageTest, ASingleFileIsADataSet) {
  StageOptions one = options();
  one.source = (source() / "i.bin").string();
  EXPECT_EQ(run({"a"}, one).bytes, 9'001);
  EXPECT_EQ(read_file(area("a") / "i.bin"), read_file(source() / "i.bin"));
}

TEST_F(StageTest, TheQuotaIsKept) {
  StageOptions small = options();
  small.quota_bytes = kBytes - 1;
  expect_error(ErrorCode::usage, "more than the quota of", [&] { run({"a"}, small); });
  EXPECT_FALSE(fs::exists(area("a")));
  small.quota_bytes = kBytes;
  run({"a"}, small);
}

TEST_F(StageTest, OtherContentIsNotOverwritten) {
  data::write_test_file(area("a") / "precious", "x");
  expect_error(ErrorCode::usage, "already holds something else", [&] { run({"a"}, options()); });
  fs::remove_all(area("a"));
  run({"a"}, options());
  data::write_test_file(source() / "more", "x");
  expect_error(ErrorCode::usage, "already holds something else", [&] { run({"a"}, options()); });
}

TEST_F(StageTest, TwoHostsDoNotShareADirectory) {
  StageOptions shared = options();
  shared.directory = (root_.path() / "shared").string();
  expect_error(ErrorCode::usage, "another run is writing", [&] { run({"a", "b"}, shared); });
}

TEST_F(StageTest, WhatCannotBeStagedIsSaid) {
  StageOptions wrong = options();
  wrong.source = (root_.path() / "nothing").string();
  expect_error(ErrorCode::data, "there is no data set at", [&] { run({"a"}, wrong); });
  wrong = options();
  wrong.directory = "s3://bucket/set";
  expect_error(ErrorCode::usage, "not to s3://", [&] { run({"a"}, wrong); });
}

TEST_F(StageTest, AFullDiskIsSaidBeforeAnythingIsWritten) {
  // A file of holes, larger than any disk here.
  fs::resize_file(source() / "a.bin", int64_t{1} << 42);
  StageOptions large = options();
  large.block_bytes = int64_t{1} << 34;
  expect_error(ErrorCode::data, "staging takes 4", [&] { run({"a"}, large); });
  EXPECT_FALSE(fs::exists(area("a") / "a.bin.partial"));
}

TEST(StagePlan, BlocksCoverTheStreamWithoutGaps) {
  const data::TemporaryDirectory root;
  for (int i = 0; i < 30; ++i)
    data::write_test_file(root.path() / fmt::format("{:02}", i),
                          noise(static_cast<size_t>(i * i * 7 % 400), 1));
  const auto storage = data::open_storage(root.path().string());
  for (const int64_t block_bytes : {1, 7, 100, 5'000, 1'000'000}) {
    const StagePlan plan =
        StagePlan::parse(StagePlan::of(*storage, root.path().string(), block_bytes).text());
    std::vector<int64_t> next(plan.files().size(), 0);
    for (int64_t block = 0; block < plan.blocks(); ++block) {
      int64_t place = 0;
      for (const Piece& piece : plan.pieces(block)) {
        EXPECT_EQ(piece.place, place);
        EXPECT_EQ(piece.offset, next[piece.file]);
        EXPECT_GT(piece.length, 0);
        place += piece.length;
        next[piece.file] += piece.length;
      }
      EXPECT_EQ(place, plan.bytes_of(block));
    }
    for (size_t i = 0; i < next.size(); ++i) EXPECT_EQ(next[i], plan.files()[i].size);
  }
}

}  // namespace
}  // namespace renkei::staging
