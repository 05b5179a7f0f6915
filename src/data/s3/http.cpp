#include "data/s3/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <mutex>

#include "base/error.h"

namespace renkei::data {
namespace {

// Slower than this a line is as good as broken.
constexpr double kLeastBytesPerSecond = 50e3;

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;
using List = std::unique_ptr<curl_slist, FreeList>;

void start_library() {
  static const bool started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  if (!started) throw Error(ErrorCode::bug, "libcurl could not be started");
}

// One request on its way; libcurl calls back with pieces.
struct Transfer {
  CURL* handle;
  const HttpRequest& request;
  HttpResponse response;
  size_t sent = 0;
  bool too_long = false;

  bool is_good() const {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
  }
};

size_t take_body(char* bytes, size_t, size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  HttpResponse& response = transfer.response;
  if (transfer.request.into.empty() || !transfer.is_good()) {
    response.body.append(bytes, count);
  } else {
    const auto done = static_cast<size_t>(response.bytes);
    if (count > transfer.request.into.size() - done) {
      transfer.too_long = true;
      response.bytes += static_cast<int64_t>(count);
      return 0;
    }
    std::memcpy(transfer.request.into.data() + done, bytes, count);
  }
  response.bytes += static_cast<int64_t>(count);
  return count;
}

size_t take_header(char* bytes, size_t, size_t count, void* user) {
  auto& headers = static_cast<Transfer*>(user)->response.headers;
  const std::string_view line(bytes, count);
  if (line.starts_with("HTTP/")) headers.clear();  // of "100 Continue", or of a proxy
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  std::string name(line.substr(0, colon));
  for (char& letter : name)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())))
    value.remove_prefix(1);
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())))
    value.remove_suffix(1);
  headers[name] = std::string(value);
  return count;
}

size_t give_body(char* into, size_t, size_t room, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const std::string_view rest = transfer.request.body.substr(transfer.sent);
  const size_t count = std::min(room, rest.size());
  std::memcpy(into, rest.data(), count);
  transfer.sent += count;
  return count;
}

// A connection that was closed meanwhile makes libcurl start again.
int rewind_body(void* user, curl_off_t offset, int) {
  static_cast<Transfer*>(user)->sent = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

void set_method(CURL* handle, const HttpRequest& request) {
  if (request.method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  } else {
    curl_easy_setopt(handle, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void set_time_limits(CURL* handle, double timeout_seconds, size_t bytes) {
  const auto milliseconds = [](double seconds) { return static_cast<long>(seconds * 1000) + 1; };
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(timeout_seconds));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME,
                   std::max(1L, static_cast<long>(timeout_seconds)));
  curl_easy_setopt(
      handle, CURLOPT_TIMEOUT_MS,
      milliseconds(2 * timeout_seconds + static_cast<double>(bytes) / kLeastBytesPerSecond));
}

}  // namespace

struct HttpClient::Pool {
  std::mutex mutex;
  std::vector<Handle> free;

  Handle take() {
    {
      const std::lock_guard lock(mutex);
      if (!free.empty()) {
        Handle handle = std::move(free.back());
        free.pop_back();
        return handle;
      }
    }
    Handle handle(curl_easy_init());
    if (!handle) throw Error(ErrorCode::memory, "there is no memory for another connection");
    return handle;
  }
  void give_back(Handle handle) {
    curl_easy_reset(handle.get());  // keeps the connection
    const std::lock_guard lock(mutex);
    free.push_back(std::move(handle));
  }
};

HttpClient::HttpClient(double timeout_seconds)
    : timeout_seconds_(timeout_seconds), pool_(std::make_unique<Pool>()) {
  start_library();
}

HttpClient::~HttpClient() = default;

HttpResponse HttpClient::send(const HttpRequest& request) {
  Handle owned = pool_->take();
  CURL* const handle = owned.get();
  Transfer transfer{.handle = handle, .request = request};
  List headers;
  const auto add_header = [&](const std::string& line) {
    headers.reset(curl_slist_append(headers.release(), line.c_str()));
  };
  for (const std::string& line : request.headers) add_header(line);
  add_header("Expect:");  // to wait for a go-ahead costs a second where a server knows none
  char reason[CURL_ERROR_SIZE] = "";

  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);  // what was signed, dots and all
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L * 1024);
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_READFUNCTION, give_body);
  curl_easy_setopt(handle, CURLOPT_READDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, rewind_body);
  curl_easy_setopt(handle, CURLOPT_SEEKDATA, &transfer);
  set_method(handle, request);
  set_time_limits(handle, timeout_seconds_, request.body.size() + request.into.size());

  const CURLcode result = curl_easy_perform(handle);
  if (result == CURLE_OK || transfer.too_long) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    transfer.response.status = static_cast<int>(status);
  } else {
    transfer.response.failure = reason[0] != '\0' ? reason : curl_easy_strerror(result);
  }
  pool_->give_back(std::move(owned));
  return std::move(transfer.response);
}

}  // namespace renkei::data
