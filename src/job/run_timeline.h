// The timeline of a run, from the first process to the end: recorded by every rank in the run
// directory, by clocks that are compared at the beginning and at the end.
#pragma once

#include <filesystem>
#include <memory>

#include "base/settings.h"
#include "comm/transport/transport.h"
#include "timeline/rank_file.h"

namespace renkei::job {

void declare_timeline_settings(Settings& settings);

// The processes of a job that a supervisor starts learn from it when the job began.
void note_beginning_for_ranks();

// What comes before and after the steps: each phase ends where the next begins.
class Phases {
 public:
  Phases();  // "launch" and "start of the program and MPI" are over

  void end(std::string_view name);  // the phase that ends now; of static storage
  void skip();                      // what was until now is recorded otherwise
  // All ranks together; from here on phases are written as they end.
  void open(const Settings& settings, const std::filesystem::path& run_directory,
            comm::Transport& transport);
  timeline::RankFile* file() { return file_.get(); }  // null: the timeline is off
  // All ranks together, at an orderly end: timeline.json appears, made by rank 0.
  void close(const std::filesystem::path& run_directory, comm::Transport& transport,
             const comm::Call& call);

 private:
  double began_, now_;
  std::vector<timeline::Event> before_;  // there was a file
  std::unique_ptr<timeline::RankFile> file_;
};

}  // namespace renkei::job
