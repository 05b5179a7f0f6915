#include "data/storage/storage.h"
#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

TEST(S3Missing, IsANamedErrorAtItsUse) {
  expect_error(ErrorCode::usage, "this renkei was built without S3 support",
               [] { open_storage("s3://bucket/prefix"); });
}

}  // namespace
}  // namespace renkei::data
