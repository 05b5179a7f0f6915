#include "data/s3/s3_path.h"

#include <algorithm>

#include "base/error.h"

namespace renkei::data {
namespace {

bool is_bucket_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_';
}

}  // namespace

S3Path parse_s3_path(std::string_view path) {
  constexpr std::string_view kScheme = "s3://";
  std::string_view rest = path;
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  const std::string_view bucket = rest.substr(0, rest.find('/'));
  if (!path.starts_with(kScheme) || bucket.empty() ||
      !std::ranges::all_of(bucket, is_bucket_letter))
    throw Error(ErrorCode::usage, fmt::format("'{}' names no bucket", path),
                "write s3://bucket/prefix");
  rest.remove_prefix(bucket.size());
  while (rest.starts_with('/')) rest.remove_prefix(1);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  return {std::string(bucket), std::string(rest)};
}

}  // namespace renkei::data
