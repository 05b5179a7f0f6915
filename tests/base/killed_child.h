#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

namespace renkei::test {

// Runs `work` in a child process and returns how it ended, as waitpid tells it.
inline int run_in_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("could not fork");
  if (child == 0) {
    try {
      work();
    } catch (...) {
      ::_exit(99);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// Runs `work` again and again in a child process, waits until `started`, lets it go on for a while
// and ends it with SIGKILL: the child runs no destructor and flushes nothing. Returns whether the
// child was alive until then.
inline bool kill_in_the_middle(const std::function<void()>& work,
                               const std::function<bool()>& started, int microseconds) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("could not fork");
  if (child == 0) {
    try {
      while (true) work();
    } catch (...) {
      ::_exit(99);
    }
  }
  for (int tries = 0; tries < 10000 && !started(); ++tries) ::usleep(1000);
  ::usleep(static_cast<useconds_t>(microseconds));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace renkei::test
