#include "data/pack/pack.h"

#include "base/file.h"
#include "data/image/decode.h"
#include "data/pack/verify.h"
#include "data/source/open_source.h"
#include "data/source/synth_source.h"
#include "tests/data/expect_error.h"
#include "tests/data/temporary_directory.h"
#include "tests/data/write_file.h"

namespace renkei::data {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Source> drawn(int64_t images) {
  return make_synth_source({.images = images, .width = 24, .height = 16});
}

std::unique_ptr<Source> open(const fs::path& directory) {
  return open_source(open_storage(directory.string()), {.path = directory.string()});
}

TEST(Pack, KeepsSamplesLabelsAndExtents) {
  const TemporaryDirectory root;
  const auto source = drawn(25);
  const PackResult result =
      pack({{"train", *source}}, {.directory = root.path(), .shard_bytes = 5000});
  EXPECT_EQ(result.samples, 25);
  EXPECT_GT(result.shards, 2);
  const auto packed = open(root.path());
  ASSERT_EQ(packed->count(), 25);
  EXPECT_EQ(packed->files(), result.shards);
  EXPECT_EQ(packed->class_names(), source->class_names());
  for (int64_t sample = 0; sample < 25; ++sample) {
    EXPECT_EQ(packed->read(sample, 0), source->read(sample, 0));
    EXPECT_EQ(packed->label(sample), source->label(sample));
    EXPECT_EQ(packed->extent(sample), (ImageExtent{24, 16}));
  }
  EXPECT_TRUE(verify(*packed, {.decode = true}).empty());
}

TEST(Pack, TheResultDoesNotDependOnThreads) {
  const TemporaryDirectory root;
  const auto source = drawn(25);
  const auto checksum = [&](const char* name, int threads) {
    return pack({{"train", *source}},
                {.directory = root.path() / name, .shard_bytes = 5000, .threads = threads})
        .checksum;
  };
  EXPECT_EQ(checksum("a", 1), checksum("b", 4));
  for (const auto& entry : fs::directory_iterator(root.path() / "a"))
    EXPECT_EQ(read_file(entry.path()), read_file(root.path() / "b" / entry.path().filename()));
}

TEST(Pack, AShardThatIsNotFinishedIsWrittenAgain) {
  const TemporaryDirectory root;
  const auto source = drawn(25);
  const PackOptions options{.directory = root.path(), .shard_bytes = 5000};
  const std::string checksum = pack({{"train", *source}}, options).checksum;
  // As a crash would leave it: no dataset.json, one index missing, one archive cut off.
  fs::remove(root.path() / "dataset.json");
  fs::remove(root.path() / "train-000000.index");
  fs::resize_file(root.path() / "train-000001.tar", 1000);
  const PackResult again = pack({{"train", *source}}, options);
  EXPECT_EQ(again.checksum, checksum);
  EXPECT_EQ(again.shards_found, again.shards - 2);
  EXPECT_TRUE(verify(*open(root.path()), {}).empty());
}

TEST(Pack, RefusesOtherOptionsAndFinishedDirectories) {
  const TemporaryDirectory root;
  const auto source = drawn(5);
  write_test_file(root.path() / "pack.json", "{}\n");
  expect_error(ErrorCode::usage, "holds a part of another data set", [&] {
    pack({{"train", *source}}, {.directory = root.path()});
  });
  fs::remove(root.path() / "pack.json");
  pack({{"train", *source}}, {.directory = root.path()});
  expect_error(ErrorCode::usage, "already holds a data set", [&] {
    pack({{"train", *source}}, {.directory = root.path()});
  });
}

TEST(Pack, AnUnreadableSampleIsNamed) {
  const TemporaryDirectory root;
  write_test_file(root.path() / "in" / "a" / "1.jpg", "no image");
  const auto source = open(root.path() / "in");
  expect_error(ErrorCode::data, "a/1.jpg is neither a JPEG nor a PNG image", [&] {
    pack({{"train", *source}}, {.directory = root.path() / "out"});
  });
  EXPECT_FALSE(fs::exists(root.path() / "out" / "dataset.json"));
}

TEST(Verify, NamesWhatIsBadInOrder) {
  const TemporaryDirectory root;
  for (int i = 0; i < 20; ++i)
    write_test_file(root.path() / "a" / fmt::format("{:02}.jpg", i),
                    i % 7 == 3 ? "no image" : drawn(1)->read(0, 0));
  const auto bad = verify(*open(root.path()), {.threads = 3});
  ASSERT_EQ(bad.size(), 3u);
  EXPECT_EQ(bad[0].sample, 3);
  EXPECT_EQ(bad[1].sample, 10);
  EXPECT_EQ(bad[2].sample, 17);
  EXPECT_THAT(bad[2].reason, testing::HasSubstr("a/17.jpg is neither"));
}

}  // namespace
}  // namespace renkei::data
