#include "cluster/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <regex>

#include "base/clock.h"

namespace renkei::cluster {
namespace {

constexpr double kSecondsToEnd = 5;  // for a launcher that was asked to

Error describe_lost_rank(LostRank lost, const Notes& notes) {
  if (const auto known = notes.find_rank(lost.rank, lost.pid))
    lost = {known->rank, known->pid, known->host, lost.signal};
  std::string hint;
  if (lost.signal == SIGKILL)
    hint = "if nobody killed it, the machine ran out of memory: see dmesg, or use a smaller batch";
  if (lost.signal == SIGSEGV || lost.signal == SIGABRT || lost.signal == SIGBUS)
    hint = "this is a bug in renkei or a library: please report it with the run directory";
  const std::string who = lost.rank ? fmt::format("rank {}", *lost.rank) : "a rank";
  const std::string process = lost.pid ? fmt::format(", process {}", *lost.pid) : "";
  Error error(ErrorCode::communication,
              fmt::format("{} (host {}{}) was ended by signal {} ({})", who, lost.host, process,
                          lost.signal, ::strsignal(lost.signal)),
              hint);
  error.rank = lost.rank;
  error.host = lost.host;
  return error;
}

// Passes the stderr of the job on, but keeps what the launcher itself says once ranks fail: its
// banners start with a line of dashes or equals signs, and everything after is its own.
class StderrFilter {
 public:
  void take(std::string_view text) {
    pending_ += text;
    if (in_banner_) return;
    // A progress bar has no line ends: only a line that may become a banner is held back.
    size_t begin = 0;
    for (size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string_view line = std::string_view(pending_).substr(begin, end - begin);
      if (is_noise(line)) continue;
      if (is_rule(line)) {
        in_banner_ = true;
        break;
      }
      write_out(pending_.substr(begin, end + 1 - begin));
    }
    pending_.erase(0, begin);
    if (!in_banner_ && !may_become_rule(pending_)) {
      write_out(pending_);
      pending_.clear();
    }
  }

  // Until the end; `look` is called about once a second.
  void take_all(int descriptor, const std::function<void()>& look) {
    std::array<char, 4096> buffer;
    pollfd waited{.fd = descriptor, .events = POLLIN, .revents = 0};
    for (double looked = now_seconds();;) {
      const int ready = ::poll(&waited, 1, 1000);
      if (now_seconds() - looked >= 1) {
        look();
        looked = now_seconds();
      }
      if (ready <= 0) continue;
      const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      take({buffer.data(), static_cast<size_t>(count)});
    }
  }

  const std::string& launcher_words() const { return pending_; }

 private:
  static bool may_become_rule(std::string_view text) {
    return text.find_first_not_of("-=") == std::string_view::npos;
  }
  // What Open MPI's own parts tell each other when ranks are gone.
  static bool is_noise(std::string_view line) {
    return line.starts_with('[') && (line.find("ORTE_ERROR_LOG:") != std::string_view::npos ||
                                     line.find("PMIX ERROR:") != std::string_view::npos);
  }
  static bool is_rule(std::string_view line) { return line.size() >= 40 && may_become_rule(line); }
  static void write_out(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }
  std::string pending_;
  bool in_banner_ = false;
};

// For the signal handler, which can take no argument.
volatile sig_atomic_t job_pid = 0;
volatile sig_atomic_t interrupted_by = 0;

// Launchers pass SIGUSR1 on to the ranks; upon SIGTERM they kill them.
void pass_signal_on(int signal) {
  const bool polite = interrupted_by == 0 && signal != SIGINT;
  interrupted_by = signal;
  if (job_pid > 0) ::kill(static_cast<pid_t>(job_pid), polite ? SIGUSR1 : SIGTERM);
}

pid_t start(const std::vector<std::string>& command,
            const std::map<std::string, std::string>& environment, int error_end, int output_file) {
  const bool terminal = ::isatty(STDERR_FILENO);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::setpgid(0, 0);  // the keyboard's signals reach it through its supervisor only
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (terminal) ::setenv("RENKEI_TERMINAL", "1", 1);
  ::dup2(error_end, STDERR_FILENO);
  if (output_file >= 0) ::dup2(output_file, STDOUT_FILENO);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  std::fprintf(stderr, "could not run %s: %s\n", arguments[0], std::strerror(errno));
  ::_exit(127);
}

// A file in memory without a name.
class HeldOutput {
 public:
  explicit HeldOutput(Output output) {
    if (output == Output::passed_on) return;
    file_ = ::memfd_create("renkei-output", MFD_CLOEXEC);
    if (file_ < 0)
      throw Error(ErrorCode::communication,
                  fmt::format("could not make a file in memory: {}", std::strerror(errno)));
  }
  ~HeldOutput() {
    if (file_ >= 0) ::close(file_);
  }
  HeldOutput(const HeldOutput&) = delete;
  HeldOutput& operator=(const HeldOutput&) = delete;

  int file() const { return file_; }
  std::string text() const {
    std::string all;
    std::array<char, 4096> buffer;
    for (ssize_t count; file_ >= 0 && (count = ::pread(file_, buffer.data(), buffer.size(),
                                                       static_cast<off_t>(all.size()))) > 0;)
      all.append(buffer.data(), static_cast<size_t>(count));
    return all;
  }

 private:
  int file_ = -1;
};

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::optional<LostRank> find_lost_rank(const std::string& words) {
  std::smatch match;
  // Open MPI: "… process rank 1 with PID 4711 on node n03 exited on signal 9 (Killed)."
  static const std::regex open_mpi(
      R"(process rank (\d+) with PID (\d+) on node\s+(\S+)\s+exited on\s+signal (\d+))");
  if (std::regex_search(words, match, open_mpi)) {
    LostRank lost{std::stoi(match[1]), std::stoll(match[2]), match[3], std::stoi(match[4])};
    if (lost.pid == 0) lost.pid.reset();  // Open MPI 4.1 does not know it in all cases
    return lost;
  }
  // MPICH: "=   PID 4711 RUNNING AT n03 …  =   EXIT CODE: 9" or "… KILLED BY SIGNAL: 9"
  static const std::regex mpich(R"(PID (\d+) RUNNING AT (\S+)[^]*?(?:EXIT CODE|SIGNAL): (\d+))");
  if (std::regex_search(words, match, mpich))
    return LostRank{std::nullopt, std::stoll(match[1]), match[2], std::stoi(match[3])};
  return std::nullopt;
}

SupervisedResult supervise(const std::vector<std::string>& command,
                           const std::map<std::string, std::string>& environment,
                           const Watch& watch, Output output) {
  const Notes notes;
  const HeldOutput held(output);
  std::map<std::string, std::string> variables = environment;
  variables[kNotesVariable] = notes.directory();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(ErrorCode::communication,
                fmt::format("could not make a pipe: {}", std::strerror(errno)));

  const pid_t child = start(command, variables, ends[1], held.file());
  ::close(ends[1]);
  job_pid = child;
  interrupted_by = 0;
  struct sigaction action {};
  action.sa_handler = pass_signal_on;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) ::sigaction(signal, &action, nullptr);

  StderrFilter filter;
  std::optional<Error> stuck;
  double given_up = 0;
  filter.take_all(ends[0], [&] {
    if (stuck) {  // a launcher that does not end its ranks is ended itself, with them
      if (now_seconds() - given_up > kSecondsToEnd) ::kill(-child, SIGKILL);
    } else if ((stuck = notes.find_stuck(watch))) {
      given_up = now_seconds();
      ::kill(child, SIGTERM);
    }
  });
  ::close(ends[0]);
  const int launcher_code = wait_for(child);
  job_pid = 0;

  SupervisedResult result{.exit_code = launcher_code, .run_directory = notes.run_directory()};
  result.output = held.text();
  if (launcher_code == 0) return result;
  if (interrupted_by != 0) {
    // The shell's convention for a program that a signal has ended.
    const int signal = interrupted_by;
    result.exit_code = 128 + signal;
    result.interrupted = true;
    result.failure =
        Error(ErrorCode::communication, fmt::format("the job was interrupted (signal {})", signal));
    return result;
  }
  result.failure = notes.first_failure();
  if (!result.failure) result.failure = stuck;
  if (!result.failure)
    if (const auto lost = find_lost_rank(filter.launcher_words()))
      result.failure = describe_lost_rank(*lost, notes);
  if (!result.failure) {
    std::fputs(filter.launcher_words().c_str(), stderr);
    result.failure =
        Error(ErrorCode::communication,
              fmt::format("the launcher {} ended with code {}", command[0], launcher_code),
              "its own words are above");
  }
  result.exit_code = result.failure->exit_code();
  return result;
}

}  // namespace renkei::cluster
