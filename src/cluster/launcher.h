// Who started this process? Rank and size come from MPI only; what the launcher's environment says
// is cross-checked, never trusted. A launcher that does not belong to the linked MPI library gives
// N times "rank 0 of 1", which would train N times the same model and look fine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace renkei::cluster {

struct Launcher {
  std::string name;  // "Open MPI", "MPICH", "Slurm"
  int rank = 0;
  int size = 1;
};

using Environment = std::function<const char*(const char* name)>;

// The launcher that the environment speaks of, if any. With several (mpirun inside a Slurm
// allocation), the innermost one that starts ranks.
std::optional<Launcher> detect_launcher(const Environment& environment);

// Throws a usage Error with the command that fixes it, when MPI sees fewer ranks than were started.
void check_launcher(const std::optional<Launcher>& launcher, int mpi_size,
                    const std::string& mpi_library, const std::string& program);

// The command line that starts `ranks` local ranks with the launcher of the linked library.
std::vector<std::string> local_launch_command(int ranks, const std::vector<std::string>& program);

}  // namespace renkei::cluster
