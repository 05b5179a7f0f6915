#include "data/s3/credentials.h"

#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"

namespace renkei::data {
namespace {

using Profile = std::map<std::string, std::string>;

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// "[name]" with "key = value" lines; indented lines belong to the key above and are left out.
std::map<std::string, Profile> read_profiles(const std::string& path) {
  std::map<std::string, Profile> profiles;
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_regular_file(path, ignored)) return profiles;
  const std::string content = read_file(path);
  Profile* current = nullptr;
  for (std::string_view rest = content; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (line.empty() || line.front() == ' ' || line.front() == '\t') continue;
    const std::string_view text = trim(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      std::string_view name = trim(text.substr(1, text.find(']') - 1));
      if (name.starts_with("profile ")) name = trim(name.substr(8));
      current = &profiles[std::string(name)];
      continue;
    }
    const size_t equals = text.find('=');
    if (current && equals != std::string_view::npos)
      (*current)[std::string(trim(text.substr(0, equals)))] = trim(text.substr(equals + 1));
  }
  return profiles;
}

// Both files, the one with the keys first.
Profile read_profile(const Environment& environment) {
  const std::string home = environment("HOME");
  const auto place = [&](const char* variable, const char* name) {
    const std::string set = environment(variable);
    return !set.empty() || home.empty() ? set : home + "/.aws/" + name;
  };
  std::string name = environment("AWS_PROFILE");
  const bool asked_for = !name.empty();
  if (!asked_for) name = "default";
  auto keys = read_profiles(place("AWS_SHARED_CREDENTIALS_FILE", "credentials"));
  auto config = read_profiles(place("AWS_CONFIG_FILE", "config"));
  if (asked_for && !keys.contains(name) && !config.contains(name))
    throw Error(
        ErrorCode::usage,
        fmt::format("there is no profile '{}' in ~/.aws/credentials or ~/.aws/config", name),
        "correct AWS_PROFILE, or unset it");
  Profile profile = std::move(keys[name]);
  profile.merge(config[name]);
  return profile;
}

}  // namespace

std::string environment_of_process(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

S3Account find_account(const S3Options& options, const Environment& environment) {
  Profile profile = read_profile(environment);
  const auto first_of = [](std::initializer_list<std::string> values) {
    for (const std::string& value : values)
      if (!value.empty()) return value;
    return std::string();
  };
  S3Account account{
      .region = first_of({options.region, environment("AWS_REGION"),
                          environment("AWS_DEFAULT_REGION"), profile["region"], "us-east-1"}),
      .endpoint = first_of({options.endpoint, environment("AWS_ENDPOINT_URL_S3"),
                            environment("AWS_ENDPOINT_URL"), profile["endpoint_url"]})};
  const std::string access = environment("AWS_ACCESS_KEY_ID"),
                    secret = environment("AWS_SECRET_ACCESS_KEY");
  if (access.empty() != secret.empty())
    throw Error(ErrorCode::usage,
                fmt::format("{} is set and {} is not",
                            access.empty() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                            access.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"),
                "set both, or neither to use ~/.aws/credentials");
  if (!access.empty())
    account.keys = {access, secret, environment("AWS_SESSION_TOKEN")};
  else if (!profile["aws_access_key_id"].empty() && !profile["aws_secret_access_key"].empty())
    account.keys = {profile["aws_access_key_id"], profile["aws_secret_access_key"],
                    profile["aws_session_token"]};
  return account;
}

}  // namespace renkei::data
