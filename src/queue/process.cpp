#include "queue/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/error.h"

namespace renkei::queue {

Output ask(const std::vector<std::string>& command, const std::string& input) {
  // A file for the input and a pipe for the output: neither side can wait for the other.
  std::FILE* file = std::tmpfile();
  std::array<int, 2> ends{};
  if (!file || ::pipe(ends.data()) != 0)
    throw Error(ErrorCode::data, fmt::format("could not start {}", command[0]));
  std::fwrite(input.data(), 1, input.size(), file);
  std::rewind(file);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::fileno(file), STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::fclose(file);
  Output output;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = ::read(ends[0], buffer.data(), buffer.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    output.text.append(buffer.data(), static_cast<size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

}  // namespace renkei::queue
