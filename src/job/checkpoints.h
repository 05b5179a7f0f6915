// Saves a session to files while it trains. All ranks write their parts at the same time, each on a
// thread of its own; a step waits only until they are copied. With the loss of each step the ranks
// tell each other who is done, and when all are, the first writes the manifest, again on a thread:
//
//   step 100   copy ─┐
//   step 101         └─ write, sync ──┐                       (each rank)
//   step 104   all have written ──────┴─ manifest, sync ──┐   (rank 0)
//   step 105                                              └─ older ones are removed
//
// A checkpoint that can't be written is a warning, and training goes on.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "checkpoint/background.h"
#include "checkpoint/store.h"
#include "job/session.h"

namespace renkei::job {

// When: whichever comes first.
struct CheckpointTimes {
  std::optional<int64_t> steps;
  std::optional<double> seconds;
  bool epochs = false;
};
// "30min", "500steps", "epoch", "off". Throws a usage Error.
CheckpointTimes parse_checkpoint_times(const std::string& text);

struct CheckpointOptions {
  std::filesystem::path directory;  // of all checkpoints of the run
  CheckpointTimes every = {};
  checkpoint::Retention keep = {};
  std::string settings = {};  // as TOML, for whoever goes on
  std::map<std::string, std::string> notes = {};
  std::function<void(const std::string&)> warn = {};  // called on rank 0
  double timeout_seconds = 300;                       // for a disk that hangs
  std::function<bool(int64_t)> disk_is_full = {};     // a rehearsal, by step
};

class Checkpoints {
 public:
  Checkpoints(Session& session, CheckpointOptions options);

  // What this rank has to say in the next step, besides a wish to stop.
  run::Votes votes() const;
  // All ranks together, after each step and its evaluation.
  void after_step();
  // Now, and returns when it is complete; whether it is. All ranks together.
  bool save();
  // Waits for one that is being written. All ranks
  // together, before the session is closed.
  void finish();

 private:
  bool is_due() const;
  void begin();
  bool complete();
  void wait_for_manifest();
  void warn(const std::string& text) const;
  bool first() const;

  Session& session_;
  CheckpointOptions options_;
  double begun_ = 0;  // when the last one was begun, or the training
  int64_t begun_step_ = -1;
  std::shared_ptr<std::byte[]> copy_;  // memory that is used again
  size_t copy_bytes_ = 0;
  checkpoint::Manifest manifest_;                                 // of the one being written
  std::optional<checkpoint::Background<std::string>> writing_;    // this rank's part
  std::optional<checkpoint::Background<std::string>> finishing_;  // the manifest, on rank 0
};

// From the next step to the last, with an evaluation after every epoch and checkpoints on the way.
// False: a rank wanted to stop; then all is saved after the step under way.
bool train(Session& session, run::Observer& observer, Checkpoints& checkpoints,
           const std::function<bool()>& wants_to_stop);

// Without a loop around it, for front ends that have one of their own. All
// ranks together.
void save_checkpoint(Session& session, const std::filesystem::path& directory,
                     const std::map<std::string, std::string>& notes = {});
// The newest that is whole; returns its notes. A data Error where there is none.
std::map<std::string, std::string> load_checkpoint(Session& session,
                                                   const std::filesystem::path& directory);

}  // namespace renkei::job
