#include "cli/ranks.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "cli/failure.h"
#include "cluster/cores.h"
#include "cluster/failure_notes.h"
#include "cluster/launcher.h"
#include "cluster/limits.h"
#include "cluster/supervisor.h"
#include "job/faults.h"
#include "job/run_timeline.h"

namespace renkei::cli {
namespace {

std::optional<cluster::Launcher> launcher() {
  return cluster::detect_launcher([](const char* name) { return std::getenv(name); });
}

// The same command, for the run that there is.
std::vector<std::string> with_resume(const std::vector<std::string>& program,
                                     const std::filesystem::path& run) {
  std::vector<std::string> words;
  for (size_t i = 0; i < program.size(); ++i) {
    const bool resume = program[i] == "--resume";
    if (!resume && !program[i].starts_with("--resume=")) words.push_back(program[i]);
    if (resume && i + 1 < program.size() && !program[i + 1].starts_with("-")) ++i;
  }
  words.push_back("--resume=" + run.string());
  return words;
}

int supervise_local_ranks(Invocation& invocation) {
  std::vector<std::string> program = invocation.arguments;
  program[0] = std::filesystem::read_symlink("/proc/self/exe");
  cluster::check_limits(cluster::current_limits(), invocation.ranks);
  job::note_beginning_for_ranks();
  const bool held = invocation.json || invocation.restarts > 0;
  for (int start = 0;; ++start) {
    const auto result = cluster::supervise(
        cluster::local_launch_command(invocation.ranks, program),
        {{job::kStartsVariable, std::to_string(job::Faults::earlier_starts() + start)}},
        {.deadline_seconds = invocation.settings.seconds("comm.timeout"),
         .ranks = invocation.ranks},
        held ? cluster::Output::held_back : cluster::Output::passed_on);
    if (!result.failure) {
      fmt::print("{}", result.output);
      return result.exit_code;
    }
    // Another kind of failure would only come again.
    const bool again = start < invocation.restarts && !result.interrupted &&
                       result.failure->code == ErrorCode::communication;
    // A check that failed has printed its result, which is the one object of stdout.
    const bool has_result = result.failure->code == ErrorCode::check && !result.output.empty();
    if (!again && (has_result || !invocation.json)) fmt::print("{}", result.output);
    tell_user(*result.failure, invocation.command, invocation.json && !again && !has_result);
    write_failure_file(result.run_directory, *result.failure, invocation.command);
    if (!again) return result.exit_code;
    fmt::print(stderr, "restart {} of {}\n", start + 1, invocation.restarts);
    // Killed earlier than that, there is nothing yet to go on with.
    if (!result.run_directory.empty() &&
        std::filesystem::exists(result.run_directory / "config.toml"))
      program = with_resume(program, result.run_directory);
  }
}

// Ranks often fail together, with the same sentence. The first rank speaks at once and ends the
// job; the others give it the time to do so.
[[noreturn]] void fail_rank(RankContext& context, const Invocation& invocation,
                            const std::exception& exception) {
  const Error error = as_error(exception);
  comm::Transport& transport = context.world.transport();
  const int rank = transport.rank();
  if (rank != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (!cluster::leave_failure_note(error, rank, transport.host(rank))) {
    Error complete = error;
    if (!complete.rank) complete.rank = rank;
    if (complete.host.empty()) complete.host = transport.host(rank);
    tell_user(complete, invocation.command, invocation.json && !has_printed_result(exception));
    write_failure_file(context.run_directory, complete, invocation.command);
  }
  context.world.abort(error.exit_code());
}

}  // namespace

void declare_rank_settings(Settings& settings) {
  settings.declare({.name = "run.threads",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "threads per rank; by itself, the cores of a host over its ranks",
                    .low = 1,
                    .high = 4096,
                    .flag = "--threads"});
}

bool has_launcher() {
  return launcher().has_value();
}

bool is_first_rank() {
  const auto found = launcher();
  return !found || found->rank == 0;
}

int expected_ranks(const Invocation& invocation) {
  const auto found = launcher();
  return found ? found->size : std::max(1, invocation.ranks);
}

int run_on_ranks(Invocation& invocation, const std::function<void(RankContext&)>& body) {
  const auto started_by = launcher();
  if (!started_by && invocation.ranks > 1) return supervise_local_ranks(invocation);
  if (started_by && invocation.ranks > 0 && invocation.ranks != started_by->size)
    throw Error(ErrorCode::usage,
                fmt::format("-n {} was given, but {} has started {} ranks", invocation.ranks,
                            started_by->name, started_by->size),
                "leave -n out under mpirun and srun");

  const std::string library = comm::mpi_library();
  cluster::check_limits(cluster::current_limits(), started_by ? started_by->size : 1);
  comm::MpiWorld world([&](std::string_view call) {
    if (started_by) cluster::tell_supervisor_call(started_by->rank, call);
  });
  RankContext context{.world = world};
  comm::Transport& transport = world.transport();
  try {
    cluster::check_launcher(started_by, transport.size(), library, invocation.arguments[0]);
    cluster::introduce_to_supervisor(transport.rank(), transport.host(transport.rank()));
    const int fair_share = cluster::threads_per_rank(transport);
    context.threads = static_cast<int>(
        invocation.settings.integer_unless_auto("run.threads").value_or(fair_share));
    body(context);
  } catch (const std::exception& exception) {
    // Under the wrong launcher each process is alone and believes to be rank 0.
    if (!is_first_rank() && transport.size() == 1) std::_Exit(as_error(exception).exit_code());
    fail_rank(context, invocation, exception);
  }
  world.close();
  return 0;
}

}  // namespace renkei::cli
