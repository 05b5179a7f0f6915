// How the ranks of a job tell their supervisor what it must know when they fail. A rank leaves
// notes in a directory that the supervisor has made and named in the environment; files, because
// they outlive the rank that wrote them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"

namespace renkei::cluster {

inline constexpr const char* kNotesVariable = "RENKEI_SUPERVISOR_DIR";

// --- The side of the ranks; without a supervisor these do nothing. ---

void introduce_to_supervisor(int rank, const std::string& host);
void tell_supervisor_run_directory(const std::filesystem::path& directory);

// What this rank is inside of and can't watch itself; empty: nothing any more. May be told before
// MPI knows the rank.
void tell_supervisor_call(int rank, std::string_view call);

// Leaves the reason of a failure. Returns false when nobody supervises: then the rank must speak
// for itself.
bool leave_failure_note(const Error& error, int rank, const std::string& host);

// --- The side of the supervisor. ---

struct RankNote {
  int rank = 0;
  int64_t pid = 0;
  std::string host;
};

// Over calls that ranks can't watch themselves.
struct Watch {
  double deadline_seconds = 300;
  int ranks = 0;  // that were started; 0: unknown
};

// The directory of the notes; removed at the end.
class Notes {
 public:
  Notes();
  ~Notes();
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;

  const std::filesystem::path& directory() const { return directory_; }

  // The failure that explains the others: the first one, but one of data, memory or numbers rather
  // than that of a rank which only missed another.
  std::optional<Error> first_failure() const;
  std::optional<RankNote> find_rank(std::optional<int> rank, std::optional<int64_t> pid) const;
  std::filesystem::path run_directory() const;  // empty: no rank has told
  // A rank that has been inside of a call for too long: who is stuck, and where.
  std::optional<Error> find_stuck(const Watch& watch) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace renkei::cluster
