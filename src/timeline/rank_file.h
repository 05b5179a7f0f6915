// The timeline of one rank, as a file that is whole at every moment: timeline/rank-N.events has the
// last slices, timeline/rank-N.steps the sums of all steps. Both are memory of the rank that lies
// in a file (mapped_file.h): recording is a copy of 64 bytes, and what a killed process has
// recorded is there.
//
//   rank-N.events   a header (who, which clock, how many), then a ring of slices: beyond
//                   `most_events` the oldest are overwritten, and counted
//   rank-N.steps    one record for each step
//
// docs/timeline.md describes both to the byte. A file that can't be kept up (a full disk) ends the
// recording, not the training.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "timeline/event.h"
#include "timeline/mapped_file.h"

namespace renkei::timeline {

// Seconds to add to a rank's clock to get that of rank 0, and how wrong that may be.
struct ClockOffset {
  double at = 0;  // by the rank's clock
  double seconds = 0;
  double error = 0;
};

struct RankInfo {
  int rank = 0, ranks = 1;
  std::string host = {};
  double origin = 0;        // when the run began, by the clock of rank 0
  double wall_seconds = 0;  // since 1970, at that moment
  bool predicted = false;   // by a simulation
  ClockOffset first = {}, last = {};
};

// What the rank does now: the task that was entered, and whether it has been left.
struct Operation {
  std::string name;
  int64_t step = -1;
  int stage = -1, index = 0, peer = -1;
  double entered = 0, left = 0;  // left < entered: still inside
  bool inside() const { return left < entered; }
};

struct RankFileOptions {
  std::filesystem::path directory;  // "timeline" of a run
  int64_t most_events = 1 << 16;
};

class RankFile {
 public:
  RankFile(const RankFileOptions& options, const RankInfo& info);
  ~RankFile();

  // From any thread.
  void add(const Event& event);
  void add(const StepRecord& record);
  void enter(const Event& event);  // its begin, name, step, stage, index and peer count
  void leave(double now);
  void set_last_offset(const ClockOffset& offset);
  void finish();  // the rank has come to an orderly end

  const std::string& failure() const { return failure_; }  // why recording ended, if it did

 private:
  struct Header;
  Header& header();
  uint16_t number_of(std::string_view name);
  template <typename Work>
  void guarded(Work work);

  std::mutex mutex_;
  int64_t most_events_;
  std::unique_ptr<MappedFile> events_, steps_;
  std::map<std::string, uint16_t, std::less<>> numbers_;  // of names
  int64_t written_steps_ = 0;
  std::string failure_;
};

// What was recorded, times by the clock of rank 0, from the beginning of the run.
struct RankTimeline {
  RankInfo info;
  std::shared_ptr<const std::vector<std::string>> names;  // that the events refer to
  std::vector<Event> events;                              // in order of their ends
  std::vector<StepRecord> steps;
  int64_t dropped_events = 0;
  Operation last;
  bool finished = false;
  double last_seen = 0;  // the end of the last thing that is known
};

// A data Error for what is no such file. A rank that left none, or one that is cut short, is left
// out.
RankTimeline read_rank_file(const std::filesystem::path& directory, int rank);
std::vector<RankTimeline> read_timeline(const std::filesystem::path& directory);

}  // namespace renkei::timeline
