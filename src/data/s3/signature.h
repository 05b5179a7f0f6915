// Amazon's signature, version 4. A request is written down in one agreed way (the canonical
// request), and its hash is signed by a key that is derived from the secret key, the day, the
// region and the service; the server does the same and compares. Whatever is not written down in
// the same way on both sides (the order of a query, an encoded slash) is a refused request.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace renkei::data {

struct S3Keys {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // of temporary keys
};

// What is signed. All texts are plain, none is encoded.
struct SignedRequest {
  std::string method;
  std::string path;  // from the host on: "/bucket/key"
  std::map<std::string, std::string> query = {};
  std::map<std::string, std::string> headers = {};  // names in small letters; `host` is needed
  std::string payload_hash;                         // SHA-256 of the body
};

struct SigningScope {
  std::string timestamp;  // "20130524T000000Z", as the header x-amz-date has it
  std::string region;
  std::string service = "s3";
};

// The value of the header Authorization.
std::string sign(const SignedRequest& request, const S3Keys& keys, const SigningScope& scope);

std::string canonical_request(const SignedRequest& request);

// Everything but letters, digits and -._~ as %XX; slashes stay in paths.
std::string encode_uri(std::string_view text, bool keep_slashes);
std::string encode_query(const std::map<std::string, std::string>& query);

std::string sha256_hex(std::string_view bytes);
std::string format_timestamp(double wall_seconds);

}  // namespace renkei::data
