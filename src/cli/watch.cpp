// renkei watch: the page of a run, live. An HTTP server on this machine alone; who knows the token
// of the printed address may look. It reads what the ranks have written and never asks them.
#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "cli/commands.h"
#include "report/live.h"
#include "report/page_data.h"

namespace renkei::cli {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string run;
  int port = 0;
  double every = 2;
};

std::string random_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

// In time that does not depend on where they differ.
bool same(std::string_view a, std::string_view b) {
  unsigned different = a.size() != b.size();
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return different == 0;
}

class Watch {
 public:
  explicit Watch(const Flags& flags) : flags_(flags), token_(random_token()) {
    if (!fs::exists(fs::path(flags.run) / "timeline"))
      throw Error(ErrorCode::data, fmt::format("there is no timeline in {}", flags.run),
                  "name the directory of a run that was not started with --timeline off");
    answer("/", [this](const httplib::Request&, httplib::Response& response) {
      const report::RunReport run = report::read_run(flags_.run);
      response.set_content(report::page_of(std::span(&run, 1)), "text/html; charset=utf-8");
    });
    answer("/data", [this](const httplib::Request&, httplib::Response& response) {
      const report::RunReport run = report::read_run(flags_.run);
      response.set_content(report::page_data(std::span(&run, 1)).dump(), "application/json");
    });
    answer("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      const auto ranks = timeline::read_timeline(fs::path(flags_.run) / "timeline");
      response.set_content(
          report::prometheus_text(report::live_status(ranks, wall_seconds()), ranks),
          "text/plain; version=0.0.4");
    });
    answer("/events", [this](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider(
          "text/event-stream", [this](size_t, httplib::DataSink& sink) { return tell(sink); });
    });
  }

  int serve() {
    const int port = flags_.port
                         ? (server_.bind_to_port("127.0.0.1", flags_.port) ? flags_.port : -1)
                         : server_.bind_to_any_port("127.0.0.1");
    if (port < 0)
      throw Error(ErrorCode::usage, fmt::format("port {} is taken", flags_.port),
                  "leave --port out to get a free one");
    fmt::print("http://127.0.0.1:{}/?token={}\n", port, token_);
    std::fflush(stdout);
    server_.listen_after_bind();
    return 0;
  }

 private:
  void answer(const char* path, httplib::Server::Handler handler) {
    server_.Get(path, [this, handler = std::move(handler)](const httplib::Request& request,
                                                           httplib::Response& response) {
      const std::string bearer = request.get_header_value("Authorization");
      if (!same(request.get_param_value("token"), token_) && !same(bearer, "Bearer " + token_)) {
        response.status = 403;
        response.set_content("the address lacks the token that renkei watch printed\n",
                             "text/plain");
        return;
      }
      response.set_header("Cache-Control", "no-store");
      response.set_header("Referrer-Policy", "no-referrer");
      try {
        handler(request, response);
      } catch (const Error& error) {
        response.status = 500;
        response.set_content(error.message + "\n", "text/plain");
      }
    });
  }

  bool tell(httplib::DataSink& sink) {
    const auto ranks = timeline::read_timeline(fs::path(flags_.run) / "timeline");
    const std::string event =
        fmt::format("data: {}\n\n", to_json(report::live_status(ranks, wall_seconds())).dump());
    if (!sink.write(event.data(), event.size())) return false;
    std::this_thread::sleep_for(std::chrono::duration<double>(flags_.every));
    return true;
  }

  Flags flags_;
  std::string token_;
  httplib::Server server_;
};

}  // namespace

Command make_watch_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "watch",
          .summary = "the live page of a run that goes on",
          .sections = {},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments.option("run", flags->run, "the run directory").required();
                arguments.option("--port", flags->port, "port on this machine; 0: any that is free")
                    .range(0, 65535);
                arguments.option("--every", flags->every, "seconds between two looks")
                    .range(0.1, 3600.0)
                    .show_default();
              },
          .run = [flags](Invocation&) { return Watch(*flags).serve(); }};
}

}  // namespace renkei::cli
