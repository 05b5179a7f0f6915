// Signals that ask a rank to save and stop: SIGTERM, SIGHUP and SIGUSR1 (what Slurm warns with). A
// second one ends the process at once.
#pragma once

namespace renkei::cli {

// While one exists, signals are noted instead of ending the process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int arrived() const;  // the first that came; 0: none
};

}  // namespace renkei::cli
