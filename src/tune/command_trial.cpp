#include "tune/command_trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"

namespace renkei::tune {
namespace {

[[noreturn]] void become(const std::vector<std::string>& command, int output) {
  ::setpgid(0, 0);
  ::dup2(output, STDOUT_FILENO);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(127);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& command, double seconds) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(ErrorCode::communication,
                fmt::format("could not make a pipe: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child == 0) become(command, ends[1]);
  ::close(ends[1]);
  ::setpgid(child, child);
  CommandResult result;
  const double end = now_seconds() + seconds;
  while (true) {
    const double left = end - now_seconds();
    if (left <= 0) {
      result.stopped = true;
      ::kill(-child, SIGKILL);
      break;
    }
    pollfd wanted{.fd = ends[0], .events = POLLIN, .revents = 0};
    if (::poll(&wanted, 1, static_cast<int>(std::min(left, 60.0) * 1000) + 1) <= 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    result.output.append(buffer.data(), static_cast<size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (result.exit_code == 127 && result.output.empty())
    throw Error(ErrorCode::usage, fmt::format("can't run {}", command[0]),
                "it must be a program; give its path, or one that PATH finds");
  return result;
}

std::vector<std::string> fill_in(const std::vector<std::string>& words,
                                 const std::map<std::string, std::string>& texts) {
  std::vector<std::string> filled = words;
  for (std::string& word : filled)
    for (const auto& [name, text] : texts) {
      const std::string mark = "{" + name + "}";
      for (size_t at = word.find(mark); at != std::string::npos;
           at = word.find(mark, at + text.size()))
        word.replace(at, mark.size(), text);
    }
  return filled;
}

std::optional<double> last_number(const std::string& text) {
  std::optional<double> found;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \t\r\n,;:=", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    char* rest = nullptr;
    const double value = std::strtod(word.c_str(), &rest);
    if (!word.empty() && *rest == '\0' && std::isfinite(value)) found = value;
    begin = end + 1;
  }
  return found;
}

}  // namespace renkei::tune
