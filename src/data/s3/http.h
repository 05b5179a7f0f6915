// HTTP requests through libcurl, one attempt each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace renkei::data {

struct HttpRequest {
  std::string method;  // GET, HEAD, PUT, POST or DELETE
  std::string url;
  std::vector<std::string> headers = {};  // "name: value"
  std::string_view body = {};
  std::span<char> into = {};  // where the body of a good answer goes; empty: into the response
};

struct HttpResponse {
  int status = 0;                                   // 0: there was no whole answer
  std::string failure;                              // then why, as one clause
  std::map<std::string, std::string> headers = {};  // names in small letters
  std::string body;                                 // where it did not go into the request's memory
  int64_t bytes = 0;  // of the body; more than there is room for, when it was cut off
};

// May be used by many threads at once. Connections are kept and used again.
class HttpClient {
 public:
  // A request ends after `timeout_seconds` without a connection or without progress. None may take
  // much longer than its bytes take on a very slow line.
  explicit HttpClient(double timeout_seconds);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;

  HttpResponse send(const HttpRequest& request);

 private:
  struct Pool;
  double timeout_seconds_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace renkei::data
