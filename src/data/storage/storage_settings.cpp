#include "data/storage/storage_settings.h"

namespace renkei::data {

void declare_storage_settings(Settings& settings) {
  settings.declare({.name = "data.direct",
                    .kind = SettingKind::boolean,
                    .default_value = "false",
                    .help = "read past the page cache of the system (O_DIRECT)"});
  settings.declare({.name = "data.s3_endpoint",
                    .kind = SettingKind::text,
                    .default_value = "auto",
                    .help = "where s3:// is, such as http://store:9000; auto: AWS_ENDPOINT_URL_S3, "
                            "AWS_ENDPOINT_URL, endpoint_url of ~/.aws/config, or else Amazon"});
  settings.declare({.name = "data.s3_region",
                    .kind = SettingKind::text,
                    .default_value = "auto",
                    .help = "region of the buckets; auto: AWS_REGION, AWS_DEFAULT_REGION, region "
                            "of ~/.aws/config, or else us-east-1"});
  settings.declare({.name = "data.s3_addressing",
                    .kind = SettingKind::choice,
                    .default_value = "auto",
                    .help = "where the bucket stands in an address: path (endpoint/bucket), host "
                            "(bucket.endpoint); auto: host for Amazon, else path",
                    .choices = {"auto", "path", "host"}});
  settings.declare({.name = "data.s3_timeout",
                    .kind = SettingKind::duration,
                    .default_value = "20s",
                    .help = "how long object storage may keep one attempt waiting",
                    .low = 0.1,
                    .high = 3600});
  settings.declare({.name = "data.s3_patience",
                    .kind = SettingKind::duration,
                    .default_value = "2min",
                    .help = "how long a request that failed for a reason that may pass (500, 503, "
                            "a dropped connection) is tried again",
                    .low = 0,
                    .high = 86400});
}

StorageOptions storage_options(const Settings& settings) {
  const auto unless_auto = [&](std::string_view name) {
    return settings.is_auto(name) ? std::string() : settings.text(name);
  };
  const std::string& addressing = settings.text("data.s3_addressing");
  return {.direct = settings.boolean("data.direct"),
          .s3 = {.endpoint = unless_auto("data.s3_endpoint"),
                 .region = unless_auto("data.s3_region"),
                 .addressing = addressing == "path"   ? S3Addressing::path
                               : addressing == "host" ? S3Addressing::host
                                                      : S3Addressing::automatic,
                 .timeout_seconds = settings.seconds("data.s3_timeout"),
                 .patience_seconds = settings.seconds("data.s3_patience")}};
}

}  // namespace renkei::data
