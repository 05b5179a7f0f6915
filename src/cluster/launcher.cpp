#include "cluster/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace renkei::cluster {
namespace {

std::optional<int> number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (!text || !*text) return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0') return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

std::optional<Launcher> detect_launcher(const Environment& environment) {
  struct Names {
    const char *launcher, *rank, *size;
  };
  for (const Names& names : {Names{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                             Names{"MPICH", "PMI_RANK", "PMI_SIZE"},
                             Names{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
    const auto rank = number(environment, names.rank);
    const auto size = number(environment, names.size);
    if (!rank || !size) continue;
    // srun --mpi=pmi2 sets the same variables as MPICH's own launcher.
    const bool slurm = environment("SLURM_STEP_ID") && names.launcher != std::string("Open MPI");
    return Launcher{slurm ? "Slurm" : names.launcher, *rank, *size};
  }
  return std::nullopt;
}

void check_launcher(const std::optional<Launcher>& launcher, int mpi_size,
                    const std::string& mpi_library, const std::string& program) {
  if (!launcher || launcher->size == mpi_size) return;
  const bool open_mpi = mpi_library.starts_with("Open MPI");
  std::string hint;
  if (launcher->name == "Slurm")
    hint = fmt::format("start it with: srun --mpi={} -n {} {} …", open_mpi ? "pmix" : "pmi2",
                       launcher->size, program);
  else
    hint =
        fmt::format("start it with: {} -n {} {} …", RENKEI_MPI_LAUNCHER, launcher->size, program);
  throw Error(
      ErrorCode::usage,
      fmt::format("{} started {} ranks, but {}, which this renkei is linked to, sees only {}",
                  launcher->name == "MPICH" ? "an MPICH launcher" : launcher->name, launcher->size,
                  mpi_library, mpi_size),
      hint);
}

std::vector<std::string> local_launch_command(int ranks, const std::vector<std::string>& program) {
  // Launchers take what comes behind it for another program to start.
  if (std::ranges::find(program, ":") != program.end())
    throw Error(ErrorCode::usage, "':' alone can't be an argument of a command on several ranks",
                "write ./: for a file of that name");
  std::vector<std::string> command{RENKEI_MPI_LAUNCHER};
  if (std::string(RENKEI_MPI_NAME) == "Open MPI") {
    // Local ranks only: no remote shell, no allocation of a job queue. More ranks than cores are
    // allowed, and must then give way to each other.
    command.insert(command.end(), {"--host", fmt::format("localhost:{}", ranks), "--oversubscribe",
                                   "--bind-to", "none", "--mca", "plm", "isolated", "--mca", "ras",
                                   "^slurm", "--mca", "mpi_yield_when_idle", "1"});
    if (::geteuid() == 0) command.push_back("--allow-run-as-root");
  } else if (std::string(RENKEI_MPI_NAME) == "MPICH") {
    command.insert(command.end(), {"-launcher", "fork", "-rmk", "user"});
  }
  command.insert(command.end(), {"-n", std::to_string(ranks)});
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

}  // namespace renkei::cluster
