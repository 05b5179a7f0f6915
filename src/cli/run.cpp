// renkei run -n 4 script.py …: starts a Python program on local ranks, or as one of the ranks that
// mpirun or srun has started. python/renkei/_rank.py is what each rank runs.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/python.h"
#include "cluster/launcher.h"
#include "cluster/limits.h"
#include "cluster/supervisor.h"

namespace renkei::cli {
namespace {

int run_program(const Invocation& invocation) {
  if (invocation.program.empty())
    throw Error(ErrorCode::usage, "renkei run needs a Python program",
                "renkei run -n 2 script.py arguments");
  if (!std::filesystem::is_regular_file(invocation.program[0]))
    throw Error(ErrorCode::usage, fmt::format("there is no file {}", invocation.program[0]),
                "flags of renkei run come before the program, and its own behind it");
  std::vector<std::string> words{find_python(), "-m", "renkei._rank"};
  words.insert(words.end(), invocation.program.begin(), invocation.program.end());
  const auto started_by =
      cluster::detect_launcher([](const char* name) { return std::getenv(name); });
  if (started_by || invocation.ranks <= 1) become_python(words);
  cluster::check_limits(cluster::current_limits(), invocation.ranks);
  const auto result = cluster::supervise(cluster::local_launch_command(invocation.ranks, words));
  if (result.failure) {
    tell_user(*result.failure, invocation.command, invocation.json);
    write_failure_file(result.run_directory, *result.failure, invocation.command);
  }
  return result.exit_code;
}

}  // namespace

Command make_run_command() {
  return {.name = "run",
          .summary = "start a Python program on several ranks: run -n 4 script.py arguments",
          .sections = {},
          .run = [](Invocation& invocation) { return run_program(invocation); },
          .starts_program = true};
}

}  // namespace renkei::cli
