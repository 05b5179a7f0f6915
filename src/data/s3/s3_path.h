#pragma once

#include <string>
#include <string_view>

namespace renkei::data {

// "s3://bucket/a/b": the bucket, and a key in it without slashes at its ends. An empty key is the
// bucket itself.
struct S3Path {
  std::string bucket;
  std::string key;
};

// A usage Error when it is no such path.
S3Path parse_s3_path(std::string_view path);

}  // namespace renkei::data
