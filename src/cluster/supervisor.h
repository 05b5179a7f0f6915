// `renkei … -n 4` starts its own ranks: this process becomes their supervisor. It runs the MPI
// launcher as a child, passes its output on, and when the job fails says in one sentence which
// rank failed first and why: a rank that fails leaves a note, a rank that is killed cannot, so its
// death is read from what the launcher says.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/failure_notes.h"

namespace renkei::cluster {

struct SupervisedResult {
  int exit_code = 0;
  std::optional<Error> failure = {};         // why, when exit_code is not 0
  std::filesystem::path run_directory = {};  // where the job said it runs; may be empty
  bool interrupted = false;                  // by a signal that was meant for the job
  std::string output = {};                   // that was held back
};

// What becomes of what the job writes to stdout. Held back, the caller decides: a job that is
// started again, or that loses a rank after its last word, must not be heard twice.
enum class Output : uint8_t { passed_on, held_back };

// Returns when all ranks have ended. SIGTERM, SIGHUP and SIGUSR1 reach the ranks as SIGUSR1, upon
// which they save and end; a second signal, and SIGINT, end them at once.
// A rank that is stuck where it can't watch itself ends the job.
SupervisedResult supervise(const std::vector<std::string>& command,
                           const std::map<std::string, std::string>& environment = {},
                           const Watch& watch = {}, Output output = Output::passed_on);

struct LostRank {
  std::optional<int> rank;
  std::optional<int64_t> pid;
  std::string host;
  int signal = 0;
};

// Finds the report of a killed process in the words of Open MPI's or MPICH's launcher.
std::optional<LostRank> find_lost_rank(const std::string& launcher_words);

}  // namespace renkei::cluster
