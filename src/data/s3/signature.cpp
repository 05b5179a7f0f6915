#include "data/s3/signature.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

#include "base/error.h"

namespace renkei::data {
namespace {

using Digest = std::array<unsigned char, 32>;

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex(const Digest& digest) {
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

Digest sha256(std::string_view bytes) {
  Digest digest;
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1)
    throw Error(ErrorCode::bug, "the TLS library could not compute a SHA-256 hash");
  return digest;
}

Digest hmac(std::string_view key, std::string_view text) {
  Digest digest;
  unsigned length = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
            reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
            &length))
    throw Error(ErrorCode::bug, "the TLS library could not sign a request");
  return digest;
}

// Without blanks at the ends, and with one where there were several.
std::string trim(std::string_view value) {
  std::string result;
  for (const char letter : value)
    if (letter != ' ' || (!result.empty() && result.back() != ' ')) result += letter;
  if (result.ends_with(' ')) result.pop_back();
  return result;
}

std::string signed_names(const SignedRequest& request) {
  std::vector<std::string> names;
  for (const auto& [name, value] : request.headers) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ";"));
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  return hex(sha256(bytes));
}

std::string format_timestamp(double wall_seconds) {
  const auto seconds = static_cast<std::time_t>(wall_seconds);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string encode_uri(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char letter : text) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' ||
                       letter == '_' || letter == '~' || (letter == '/' && keep_slashes);
    if (plain)
      encoded += letter;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  }
  return encoded;
}

std::string encode_query(const std::map<std::string, std::string>& query) {
  // Sorted as encoded, which is not always the order of the plain names.
  std::vector<std::string> parts;
  for (const auto& [name, value] : query)
    parts.push_back(fmt::format("{}={}", encode_uri(name, false), encode_uri(value, false)));
  std::ranges::sort(parts);
  return fmt::format("{}", fmt::join(parts, "&"));
}

std::string canonical_request(const SignedRequest& request) {
  std::string headers;
  for (const auto& [name, value] : request.headers)
    headers += fmt::format("{}:{}\n", name, trim(value));
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, encode_uri(request.path, true),
                     encode_query(request.query), headers, signed_names(request),
                     request.payload_hash);
}

std::string sign(const SignedRequest& request, const S3Keys& keys, const SigningScope& scope) {
  const std::string date = scope.timestamp.substr(0, 8);
  const std::string place = fmt::format("{}/{}/{}/aws4_request", date, scope.region, scope.service);
  const std::string text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", scope.timestamp, place,
                                       sha256_hex(canonical_request(request)));
  Digest key = hmac("AWS4" + keys.secret_key, date);
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service),
        std::string_view("aws4_request")})
    key = hmac(text_of(key), part);
  return fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                     keys.access_key, place, signed_names(request), hex(hmac(text_of(key), text)));
}

}  // namespace renkei::data
