#include "data/source/tfrecord.h"

#include "data/source/example.h"
#include "tests/data/expect_error.h"
#include "tests/data/memory_file.h"
#include "tests/data/source/sample_files.h"

namespace renkei::data {
namespace {

TEST(TfRecord, ScanFindsPayloadsAndLabels) {
  const std::string large(100'000, 'i');
  const std::string bytes = tf_record(example(large, 3)) + tf_record(example("small", 1000));
  const MemoryFile file(bytes);
  const auto records = scan_tfrecords(file);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].label, 3);
  EXPECT_EQ(records[1].label, 1000);
  const auto image = [&](const TfRecord& record) {
    const std::string payload = file.read(record.offset, record.length);
    return std::string(first_bytes(*find_feature(payload, "image/encoded")));
  };
  EXPECT_EQ(image(records[0]), large);
  EXPECT_EQ(image(records[1]), "small");
}

TEST(TfRecord, ARecordWithoutFeaturesHasNoLabelAndNoImage) {
  const MemoryFile file(tf_record("") + tf_record("not a protocol buffer"));
  const auto records = scan_tfrecords(file);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].label, kNoLabel);
  EXPECT_TRUE(parse_example("not a protocol buffer").empty());
}

TEST(TfRecord, EveryCutIsNoticed) {
  const std::string one = tf_record(example("image", 3));
  for (size_t length = 1; length < one.size(); ++length) {
    const MemoryFile file(one + one.substr(0, length), "a.tfrecord");
    expect_error(ErrorCode::data, "record 1 is cut off", [&] { scan_tfrecords(file); });
  }
}

TEST(TfRecord, ADamagedLengthIsNoticed) {
  std::string bytes = tf_record("payload");
  bytes[1] = 1;
  const MemoryFile file(bytes, "a.tfrecord");
  expect_error(ErrorCode::data, "a.tfrecord: the length of record 0 does not match its checksum",
               [&] { scan_tfrecords(file); });
}

}  // namespace
}  // namespace renkei::data
