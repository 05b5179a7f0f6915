#include "data/loader/disk_cache.h"

#include <filesystem>

#include "data/loader/sample_cache.h"
#include "data/permutation.h"
#include "tests/data/expect_error.h"
#include "tests/data/temporary_directory.h"
#include "tests/data/write_file.h"

namespace renkei::data {
namespace {

TEST(DiskCache, KeepsWhatItHasRoomForAndLeavesNoFile) {
  const TemporaryDirectory root;
  DiskCache cache(10, root.path().string(), 250);
  for (int64_t sample = 0; sample < 10; ++sample)
    cache.offer(sample, std::string(100, static_cast<char>('a' + sample)));
  ASSERT_TRUE(cache.find(0));
  EXPECT_EQ(*cache.find(0), std::string(100, 'a'));
  EXPECT_EQ(*cache.find(1), std::string(100, 'b'));
  for (int64_t sample = 2; sample < 10; ++sample) EXPECT_FALSE(cache.find(sample));
  EXPECT_LE(cache.bytes(), 250);
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

TEST(DiskCache, KeepsSamplesWithoutBytes) {
  const TemporaryDirectory root;
  DiskCache cache(2, root.path().string(), 10);
  cache.offer(1, "");
  ASSERT_TRUE(cache.find(1));
  EXPECT_EQ(*cache.find(1), "");
  EXPECT_FALSE(cache.find(0));
}

TEST(DiskCache, ADirectoryThatIsNoneIsNamed) {
  const TemporaryDirectory root;
  write_test_file(root.path() / "file", "x");
  expect_error(ErrorCode::data, "file/cache",
               [&] { DiskCache(2, (root.path() / "file" / "cache").string(), 10); });
}

// Memory for a quarter and a disk for a half serve three quarters, from the second epoch on.
TEST(DiskCache, TakesWhatMemoryHasNoRoomFor) {
  constexpr int64_t kSamples = 1000, kBytes = 100;
  const TemporaryDirectory root;
  SampleCache cache(
      kSamples, kSamples * 16 + kSamples / 4 * kBytes,
      std::make_unique<DiskCache>(kSamples, root.path().string(), kSamples / 2 * kBytes));
  int64_t hits = 0;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const Permutation order(kSamples, 1, epoch);
    for (int64_t position = 0; position < kSamples; ++position) {
      const int64_t sample = order(position);
      const auto found = cache.find(sample);
      const std::string expected = fmt::format("{:0>{}}", sample, kBytes);
      if (found) {
        EXPECT_EQ(*found, expected);
        ++hits;
      } else {
        cache.offer(sample, std::make_shared<const std::string>(expected));
      }
    }
  }
  EXPECT_EQ(hits, 3 * kSamples * 3 / 4);
}

}  // namespace
}  // namespace renkei::data
