// How a command runs on several ranks: by itself with -n, or as one of the ranks that mpirun or
// srun has started.
#pragma once

#include <functional>

#include "cli/command.h"
#include "comm/mpi/mpi_world.h"

namespace renkei::cli {

// What a rank knows about the job.
struct RankContext {
  comm::MpiWorld& world;
  int threads = 1;                      // for this rank
  std::filesystem::path run_directory;  // set by the command once it has one
};

void declare_rank_settings(Settings& settings);

// Starts local ranks under a supervisor when -n asks for them, or else runs `body` as a rank.
// Start-up checks (launcher, limits) come first; an error on any rank ends all of them.
int run_on_ranks(Invocation& invocation, const std::function<void(RankContext&)>& body);

// The number of ranks that the command will have, known before any is started.
int expected_ranks(const Invocation& invocation);

// Whether mpirun or srun has started this process.
bool has_launcher();

// Whether errors and banners are this process's to print, before MPI can tell its rank.
bool is_first_rank();

}  // namespace renkei::cli
