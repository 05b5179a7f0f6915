#pragma once

#include <functional>
#include <optional>
#include <string>

#include "data/s3/s3_options.h"
#include "data/s3/signature.h"

namespace renkei::data {

// Where requests go and who signs them.
struct S3Account {
  std::optional<S3Keys> keys;  // empty: requests are not signed, which public buckets allow
  std::string region;
  std::string endpoint;  // empty: Amazon's
};

// The value of an environment variable; empty where it is not set.
using Environment = std::function<std::string(const char* name)>;
std::string environment_of_process(const char* name);

// In this order, as other programs do it: the options, the environment (AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3,
// AWS_ENDPOINT_URL), and the profile AWS_PROFILE or `default` in ~/.aws/credentials and
// ~/.aws/config (or AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE). A usage Error when half a
// pair of keys is set, or when the profile that was asked for is in neither file.
S3Account find_account(const S3Options& options,
                       const Environment& environment = environment_of_process);

}  // namespace renkei::data
