// Damaged files of every kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/data/source/sample_files.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/parse.h"

namespace renkei::data {
namespace {

template <typename Parse>
void run(Parse parse, const std::string& good) {
  EXPECT_NO_THROW(parse(good));
  for (uint64_t number = 0; number < 1500; ++number)
    EXPECT_NO_THROW(expect_no_other_error(parse, damage(good, number))) << number;
}

TEST(Damage, OfTarArchivesIsADataError) {
  run(parse_tar,
      tar_member(fmt::format("{:n>120}.jpg", ""), "image") + tar_member("a.cls", "1") + tar_end());
}

TEST(Damage, OfTextIndicesIsADataError) {
  run(parse_idx, "v1.2 2\njpg 512 4 a.jpg cls 1536 1 a.cls\njpg 3584 2 b.jpg\n");
}

TEST(Damage, OfShardIndicesIsADataError) {
  run(parse_index,
      format_shard_index({{.offset = 512, .size = 4}, {.offset = 1024, .size = 9}}, 1 << 20));
}

TEST(Damage, OfNpzFilesIsADataError) {
  const std::string array = npy(kByteElement, {2, 3}, "abcdef");
  run(parse_npz, zip({{"x.npy", array}, {"y.npy", array}}, false));
  run(parse_npz, zip({{"x.npy", array}}, true));
}

TEST(Damage, OfTfRecordsIsADataError) {
  // With the checksums right, so that the damage reaches what is behind them.
  const std::string good = example("image", 7);
  run([](std::string_view payload) { parse_tfrecord(tf_record(payload)); }, good);
  run(parse_tfrecord, tf_record(good) + tf_record(good));
}

TEST(Damage, OfImagesIsADataError) {
  run(parse_image, npy(kByteElement, {4, 4, 3}, std::string(48, 'x')));
  if (kHaveJpeg) run(parse_image, encode_jpeg({20, 20, 3, std::vector<uint8_t>(1200, 7)}, 80));
}

}  // namespace
}  // namespace renkei::data
