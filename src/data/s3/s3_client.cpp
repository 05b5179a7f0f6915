#include "data/s3/s3_client.h"

#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "data/s3/retry.h"
#include "data/s3/xml.h"

namespace renkei::data {
namespace {

// As long as an endpoint has never answered, it may well be a wrong one.
constexpr double kPatienceWithStrangers = 10;

struct Place {
  std::string host;  // with the port
  std::string path;  // plain
  std::string url;   // without the query
};

Place place_of(const S3Options& options, const S3Account& account, const S3Path& path) {
  const bool amazon = account.endpoint.empty();
  std::string endpoint =
      amazon ? fmt::format("https://s3.{}.amazonaws.com", account.region) : account.endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const size_t begin = endpoint.find("://");
  if (!(endpoint.starts_with("http://") || endpoint.starts_with("https://")) ||
      begin + 3 >= endpoint.size())
    throw Error(ErrorCode::usage, fmt::format("the S3 endpoint '{}' is no address", endpoint),
                "write http://HOST:PORT or https://HOST in data.s3_endpoint or AWS_ENDPOINT_URL");
  const std::string scheme = endpoint.substr(0, begin + 3);
  const size_t slash = endpoint.find('/', begin + 3);
  Place place{.host = endpoint.substr(begin + 3, slash - begin - 3),
              .path = slash == std::string::npos ? "" : endpoint.substr(slash)};
  // A certificate for *.amazonaws.com does not cover a bucket with dots in its name.
  const bool by_host = options.addressing == S3Addressing::host ||
                       (options.addressing == S3Addressing::automatic && amazon &&
                        path.bucket.find('.') == std::string::npos);
  if (by_host)
    place.host = fmt::format("{}.{}", path.bucket, place.host);
  else
    place.path += "/" + path.bucket;
  place.path += path.key.empty() && !by_host ? "" : "/" + path.key;
  place.url = scheme + place.host + encode_uri(place.path, true);
  return place;
}

int64_t number_of(const std::string& text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string header_of(const HttpResponse& response, const char* name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

std::string name_of(const S3Path& path) {
  return fmt::format("s3://{}{}{}", path.bucket, path.key.empty() ? "" : "/", path.key);
}

// What went wrong, in the words of the server: "SignatureDoesNotMatch", or at least the status.
std::string reason_of(const HttpResponse& response) {
  if (response.status == 0) return response.failure;
  const std::string code = xml_text(response.body, "Code");
  return code.empty() ? fmt::format("status {}", response.status)
                      : fmt::format("{}, status {}", code, response.status);
}

}  // namespace

S3Client::S3Client(const S3Options& options, S3Account account)
    : options_(options), account_(std::move(account)), http_(options.timeout_seconds) {}

HttpResponse S3Client::attempt(const Call& call) {
  const Place place = place_of(options_, account_, call.path);
  SignedRequest request{.method = call.method,
                        .path = place.path,
                        .query = call.query,
                        .headers = call.headers,
                        .payload_hash = sha256_hex(call.body)};
  request.headers["host"] = place.host;
  HttpRequest sent{.method = call.method, .url = place.url, .body = call.body, .into = call.into};
  if (!call.query.empty()) sent.url += "?" + encode_query(call.query);
  if (account_.keys) {
    const std::string timestamp = format_timestamp(wall_seconds());
    request.headers["x-amz-date"] = timestamp;
    request.headers["x-amz-content-sha256"] = request.payload_hash;
    if (!account_.keys->session_token.empty())
      request.headers["x-amz-security-token"] = account_.keys->session_token;
    sent.headers.push_back(
        "Authorization: " +
        sign(request, *account_.keys, {.timestamp = timestamp, .region = account_.region}));
  }
  for (const auto& [name, value] : request.headers)
    if (name != "host") sent.headers.push_back(name + ": " + value);
  return http_.send(sent);
}

HttpResponse S3Client::send(const Call& call, std::initializer_list<int> accepted) {
  Patience patience(options_.patience_seconds);
  while (true) {
    HttpResponse response = attempt(call);
    if (response.status != 0) answered_ = true;
    if (response.status >= 200 && response.status < 300) return response;
    for (const int status : accepted)
      if (response.status == status) return response;
    if (!may_pass(response)) throw refusal(call, response);
    if (!patience.wait(answered_ ? options_.patience_seconds : kPatienceWithStrangers))
      throw Error(
          ErrorCode::communication,
          fmt::format("{}: the object storage at {} failed {} times in {}: {}", name_of(call.path),
                      place_of(options_, account_, call.path).host, patience.attempts(),
                      format_duration(patience.spent_seconds()), reason_of(response)),
          answered_ ? "check the storage and the network, or raise data.s3_patience"
                    : "check the address: data.s3_endpoint or AWS_ENDPOINT_URL");
  }
}

Error S3Client::refusal(const Call& call, const HttpResponse& response) const {
  const std::string code = xml_text(response.body, "Code"), name = name_of(call.path);
  const auto fail = [&](ErrorCode kind, std::string_view what, std::string hint) {
    return Error(kind, fmt::format("{}: {} ({})", name, what, reason_of(response)),
                 std::move(hint));
  };
  if (code == "RequestTimeTooSkewed")
    return fail(ErrorCode::usage, "the object storage has another time than this machine",
                "set the clock of this machine");
  if (response.status == 403 || response.status == 401)
    return fail(ErrorCode::usage, "the object storage refused access",
                account_.keys
                    ? "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the profile in "
                      "~/.aws/credentials, and that they may use this bucket"
                    : "no keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                      "write them to ~/.aws/credentials");
  if (code == "NoSuchBucket")
    return fail(ErrorCode::data, "there is no such bucket", "check the name of the bucket");
  if (response.status == 404)
    return fail(ErrorCode::data, "there is no such object", "check the path");
  if (response.status == 416)
    return fail(ErrorCode::data, "the object became shorter while it was read",
                "the data set was changed: start again");
  const std::string region = header_of(response, "x-amz-bucket-region");
  if (response.status == 301 || response.status == 307 || code == "AuthorizationHeaderMalformed")
    return fail(ErrorCode::usage, "the bucket is in another region",
                region.empty() ? "set AWS_REGION or data.s3_region"
                               : fmt::format("set AWS_REGION or data.s3_region to {}", region));
  return fail(ErrorCode::data, "the object storage refused the request",
              "check data.s3_endpoint; a server that is not S3-compatible answers like this");
}

std::optional<S3Object> S3Client::find(const S3Path& path) {
  const HttpResponse response = send({.method = "HEAD", .path = path}, {404});
  if (response.status == 404) return {};
  const int64_t size = number_of(header_of(response, "content-length"));
  if (size < 0)
    throw Error(ErrorCode::data,
                fmt::format("{}: the object storage does not say how long it is", name_of(path)),
                "check data.s3_endpoint: is this an S3-compatible server?");
  return S3Object{.key = path.key, .size = size, .etag = header_of(response, "etag")};
}

void S3Client::read(const S3Path& path, const S3Object& object, int64_t offset,
                    std::span<char> into) {
  const auto length = static_cast<int64_t>(into.size());
  const HttpResponse response =
      send({.method = "GET",
            .path = path,
            .headers = {{"range", fmt::format("bytes={}-{}", offset, offset + length - 1)}},
            .into = into});
  if (header_of(response, "etag") != object.etag)
    throw Error(ErrorCode::data,
                fmt::format("{}: the object was changed while it was read", name_of(path)),
                "start again, with a data set that stays as it is");
  // A server without ranges sends everything, which is right only when everything was wanted.
  const bool whole = offset == 0 && length == object.size;
  if (response.bytes != length || (response.status != 206 && !whole))
    throw Error(ErrorCode::data,
                fmt::format("{}: the answer is not the {} bytes at offset {} that were asked for",
                            name_of(path), length, offset),
                "the server must support ranged reads");
}

HttpResponse S3Client::ask_for_list(const std::string& bucket,
                                    std::map<std::string, std::string> query) {
  query["list-type"] = "2";
  HttpResponse response =
      send({.method = "GET", .path = {.bucket = bucket, .key = ""}, .query = std::move(query)});
  if (xml_elements(response.body, "ListBucketResult").empty())
    throw Error(ErrorCode::data, fmt::format("s3://{}: the answer is no list of objects", bucket),
                "check data.s3_endpoint: is this an S3-compatible server?");
  return response;
}

S3Page S3Client::list(const std::string& bucket, const std::string& prefix,
                      const std::string& next) {
  std::map<std::string, std::string> query{{"delimiter", "/"}, {"prefix", prefix}};
  if (!next.empty()) query["continuation-token"] = next;
  const HttpResponse response = ask_for_list(bucket, std::move(query));
  S3Page page;
  for (const std::string_view object : xml_elements(response.body, "Contents"))
    page.objects.push_back({.key = xml_text(object, "Key"),
                            .size = number_of(xml_text(object, "Size")),
                            .etag = xml_text(object, "ETag")});
  for (const std::string_view common : xml_elements(response.body, "CommonPrefixes"))
    page.prefixes.push_back(xml_text(common, "Prefix"));
  if (xml_text(response.body, "IsTruncated") == "true")
    page.next = xml_text(response.body, "NextContinuationToken");
  return page;
}

bool S3Client::has_any(const std::string& bucket, const std::string& prefix) {
  const HttpResponse response = ask_for_list(bucket, {{"prefix", prefix}, {"max-keys", "1"}});
  return !xml_elements(response.body, "Contents").empty();
}

void S3Client::put(const S3Path& path, std::string_view content) {
  send({.method = "PUT", .path = path, .body = content});
}

void S3Client::remove(const S3Path& path) {
  send({.method = "DELETE", .path = path}, {404});
}

std::string S3Client::begin_upload(const S3Path& path) {
  const HttpResponse response = send({.method = "POST", .path = path, .query = {{"uploads", ""}}});
  std::string upload = xml_text(response.body, "UploadId");
  if (upload.empty())
    throw Error(ErrorCode::data,
                fmt::format("{}: the object storage takes no upload in parts", name_of(path)),
                "choose smaller shards: --shard-size 8MiB");
  return upload;
}

std::string S3Client::put_part(const S3Path& path, const std::string& upload, int number,
                               std::string_view content) {
  return header_of(send({.method = "PUT",
                         .path = path,
                         .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}},
                         .body = content}),
                   "etag");
}

void S3Client::complete_upload(const S3Path& path, const std::string& upload,
                               const std::vector<std::string>& etags, int64_t size) {
  std::string body = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags.size(); ++i)
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1,
                        escape_xml(etags[i]));
  body += "</CompleteMultipartUpload>";
  const Call call{.method = "POST",
                  .path = path,
                  .query = {{"uploadId", upload}},
                  .headers = {{"content-type", "application/xml"}},
                  .body = body};
  HttpResponse response = send(call, {404});
  // The answer may be "200 OK" before the storage knows, with an error in its body.
  const bool good = response.status == 200 && xml_elements(response.body, "Error").empty();
  if (good) return;
  // An upload that is unknown was completed by an attempt whose answer was lost.
  const auto found = find(path);
  if (found && found->size == size) return;
  throw Error(ErrorCode::communication,
              fmt::format("{}: the object storage could not put the parts together ({})",
                          name_of(path), reason_of(response)),
              "run the same command again: what is finished is kept");
}

void S3Client::abandon_upload(const S3Path& path, const std::string& upload) noexcept {
  try {
    attempt({.method = "DELETE", .path = path, .query = {{"uploadId", upload}}});
  } catch (const std::exception&) {
    // The storage drops it by its own rules.
  }
}

}  // namespace renkei::data
