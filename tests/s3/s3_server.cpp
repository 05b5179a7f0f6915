#include "tests/s3/s3_server.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "data/s3/http.h"

namespace renkei::data {
namespace {

// The line with the port; the end of the file when the server could not start.
std::string read_line(int descriptor) {
  std::string line;
  char letter = 0;
  while (::read(descriptor, &letter, 1) == 1 && letter != '\n') line += letter;
  return line;
}

}  // namespace

S3Server::S3Server() {
  ::setenv("HOME", home_.path().c_str(), 1);  // whatever this user has in ~/.aws
  ::setenv("NO_PROXY", "127.0.0.1", 1);
  ::setenv("AWS_ACCESS_KEY_ID", "S3RVER", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "S3RVER", 1);
  ::unsetenv("AWS_SESSION_TOKEN");
  ::unsetenv("AWS_PROFILE");
  start();
}

void S3Server::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const std::string script = RENKEI_S3_SERVER, directory = (home_.path() / "objects").string(),
                    port = std::to_string(port_);
  // The server makes its continuation tokens with a cipher that OpenSSL 3 calls one of the past.
  const char* const arguments[] = {RENKEI_NODE,    "--openssl-legacy-provider",
                                   script.c_str(), directory.c_str(),
                                   port.c_str(),   "data",
                                   nullptr};
  const int failed = ::posix_spawn(&process_, RENKEI_NODE, &actions, nullptr,
                                   const_cast<char* const*>(arguments), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  const std::string line = failed == 0 ? read_line(ends[0]) : "";
  ::close(ends[0]);
  if (line.empty()) throw std::runtime_error("the S3 server of the tests did not start");
  port_ = std::stoi(line);
}

void S3Server::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

S3Options S3Server::options() const {
  return {.endpoint = fmt::format("http://127.0.0.1:{}", port_),
          .timeout_seconds = 10,
          .patience_seconds = 20};
}

void S3Server::fail(const std::string& kind, int count) const {
  HttpClient(5).send(
      {.method = "POST",
       .url = fmt::format("{}/-/faults?kind={}&count={}", options().endpoint, kind, count)});
}

int S3Server::faults_left() const {
  return std::stoi(
      HttpClient(5).send({.method = "GET", .url = options().endpoint + "/-/faults"}).body);
}

}  // namespace renkei::data
