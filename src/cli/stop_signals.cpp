#include "cli/stop_signals.h"

#include <signal.h>
#include <unistd.h>

namespace renkei::cli {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGHUP, SIGUSR1};

// For the signal handler, which can take no argument.
volatile sig_atomic_t stop_signal = 0;

void note(int signal) {
  if (stop_signal != 0) ::_exit(128 + signal);
  stop_signal = signal;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  set_handler(note);
}

StopSignals::~StopSignals() {
  set_handler(SIG_DFL);
}

int StopSignals::arrived() const {
  return stop_signal;
}

}  // namespace renkei::cli
