// The operations of S3-compatible object storage that data sets need. Requests that fail for a
// reason that may pass are tried again, with pauses that double up to a few seconds and differ by
// chance, so that a thousand ranks do not come back at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/s3/credentials.h"
#include "data/s3/http.h"
#include "data/s3/s3_path.h"

namespace renkei::data {

struct S3Object {
  std::string key;
  int64_t size = 0;
  std::string etag = {};  // differs when the content does
};

struct S3Page {
  std::vector<S3Object> objects;
  std::vector<std::string> prefixes;  // of "a/b/c" with the delimiter "/": "a/"
  std::string next;                   // asks for the following page; empty: there is none
};

// May be used by many threads at once. Errors name s3://bucket/key:
//   usage          keys, permissions, region: what the user has set (403, 301, 400)
//   data           an object that is not there or is not what it was (404, 416)
//   communication  the storage did not answer, for as long as the patience lasts
class S3Client {
 public:
  S3Client(const S3Options& options, S3Account account);

  std::optional<S3Object> find(const S3Path& path);  // empty: there is none
  // Fills `into` from this offset of the object.
  void read(const S3Path& path, const S3Object& object, int64_t offset, std::span<char> into);
  // Keys that start with the prefix; those with a slash after it only by their next prefix.
  S3Page list(const std::string& bucket, const std::string& prefix, const std::string& next);
  bool has_any(const std::string& bucket, const std::string& prefix);

  void put(const S3Path& path, std::string_view content);
  void remove(const S3Path& path);

  // An upload in parts, of which each but the last has at least 5 MiB. The object appears when it
  // is completed.
  std::string begin_upload(const S3Path& path);
  std::string put_part(const S3Path& path, const std::string& upload, int number,
                       std::string_view content);  // its etag
  void complete_upload(const S3Path& path, const std::string& upload,
                       const std::vector<std::string>& etags, int64_t size);
  void abandon_upload(const S3Path& path, const std::string& upload) noexcept;

 private:
  struct Call {
    const char* method;
    S3Path path;
    std::map<std::string, std::string> query = {};
    std::map<std::string, std::string> headers = {};
    std::string_view body = {};
    std::span<char> into = {};
  };

  HttpResponse attempt(const Call& call);
  // A 2xx answer, or one of the statuses that the caller wants to see itself.
  HttpResponse send(const Call& call, std::initializer_list<int> accepted = {});
  HttpResponse ask_for_list(const std::string& bucket, std::map<std::string, std::string> query);
  Error refusal(const Call& call, const HttpResponse& response) const;

  S3Options options_;
  S3Account account_;
  HttpClient http_;
  std::atomic<bool> answered_ = false;  // once, so that the endpoint is right
};

}  // namespace renkei::data
