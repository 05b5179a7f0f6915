#include "data/s3/s3_path.h"

#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

TEST(S3Path, IsABucketAndAKey) {
  EXPECT_EQ(parse_s3_path("s3://my-bucket.x/a/b c.tar").bucket, "my-bucket.x");
  EXPECT_EQ(parse_s3_path("s3://my-bucket.x/a/b c.tar").key, "a/b c.tar");
  EXPECT_EQ(parse_s3_path("s3://bucket").key, "");
  EXPECT_EQ(parse_s3_path("s3://bucket/").key, "");
  EXPECT_EQ(parse_s3_path("s3://bucket//a//b/").key, "a//b");
}

TEST(S3Path, WithoutABucketIsRefused) {
  for (const char* path : {"s3://", "s3:///key", "bucket/key", "s3://a b/key", "s3:/bucket"})
    expect_error(ErrorCode::usage, "names no bucket", [&] { parse_s3_path(path); });
}

}  // namespace
}  // namespace renkei::data
