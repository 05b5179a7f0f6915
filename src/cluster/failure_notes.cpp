#include "cluster/failure_notes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace renkei::cluster {
namespace {

std::optional<std::filesystem::path> notes_of_this_rank() {
  const char* directory = std::getenv(kNotesVariable);
  if (!directory || !*directory) return std::nullopt;
  return directory;
}

std::vector<nlohmann::json> read_notes(const std::filesystem::path& directory,
                                       const std::string& prefix) {
  std::vector<nlohmann::json> notes;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix) || name.ends_with(".partial")) continue;
    auto note = nlohmann::json::parse(read_file(entry.path()), nullptr, false);
    if (!note.is_discarded()) notes.push_back(std::move(note));
  }
  return notes;
}

// 'R' runs, 'T' is stopped, 'D' waits for a disk …; a blank where there is no such process here.
char state_of(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(") ");
  return end == std::string::npos || end + 2 >= text.size() ? ' ' : text[end + 2];
}

}  // namespace

void introduce_to_supervisor(int rank, const std::string& host) {
  const auto notes = notes_of_this_rank();
  if (!notes) return;
  const nlohmann::json note{{"rank", rank}, {"host", host}, {"pid", ::getpid()}};
  write_file_atomically(*notes / fmt::format("rank-{}", rank), note.dump());
}

void tell_supervisor_run_directory(const std::filesystem::path& directory) {
  if (const auto notes = notes_of_this_rank())
    write_file_atomically(*notes / "run-directory", nlohmann::json(directory.string()).dump());
}

// Told often, and worth nothing once the machine is down: it need not be synced.
void tell_supervisor_call(int rank, std::string_view call) {
  const auto notes = notes_of_this_rank();
  if (!notes) return;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const nlohmann::json note{{"rank", rank},
                            {"host", host.data()},
                            {"pid", ::getpid()},
                            {"call", call},
                            {"since", wall_seconds()}};
  const std::filesystem::path file = *notes / fmt::format("call-{}", rank);
  std::ofstream(file.string() + ".partial") << note.dump();
  std::error_code ignored;
  std::filesystem::rename(file.string() + ".partial", file, ignored);
}

bool leave_failure_note(const Error& error, int rank, const std::string& host) {
  const auto notes = notes_of_this_rank();
  if (!notes) return false;
  nlohmann::json note{{"time", wall_seconds()},
                      {"code", error.exit_code()},
                      {"message", error.message},
                      {"hint", error.hint},
                      {"rank", error.rank.value_or(rank)},
                      {"host", error.host.empty() ? host : error.host}};
  if (error.step) note["step"] = *error.step;
  write_file_atomically(*notes / fmt::format("failure-{}", rank),
                        note.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return true;
}

Notes::Notes() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error)
    throw Error(ErrorCode::usage,
                fmt::format("there is no directory for temporary files: {}", error.message()),
                "set TMPDIR to a directory that you may write to");
  std::string pattern = (parent / "renkei-XXXXXX").string();
  if (!::mkdtemp(pattern.data()))
    throw Error(
        ErrorCode::data,
        fmt::format("could not create a directory like {}: {}", pattern, std::strerror(errno)),
        "set TMPDIR to a directory that you may write to");
  directory_ = pattern;
}

Notes::~Notes() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::optional<Error> Notes::first_failure() const {
  const auto notes = read_notes(directory_, "failure-");
  if (notes.empty()) return std::nullopt;
  const auto& first = *std::ranges::min_element(notes, {}, [](const nlohmann::json& note) {
    return std::pair(note.at("code") == static_cast<int>(ErrorCode::communication),
                     note.at("time").get<double>());
  });
  Error error(static_cast<ErrorCode>(first.at("code").get<int>()), first.at("message"),
              first.at("hint"));
  error.rank = first.at("rank").get<int>();
  error.host = first.at("host");
  if (first.contains("step")) error.step = first.at("step").get<int64_t>();
  return error;
}

std::optional<RankNote> Notes::find_rank(std::optional<int> rank,
                                         std::optional<int64_t> pid) const {
  for (const auto& note : read_notes(directory_, "rank-"))
    if (rank ? note.at("rank") == *rank : pid && note.at("pid") == *pid)
      return RankNote{note.at("rank"), note.at("pid"), note.at("host")};
  return std::nullopt;
}

std::optional<Error> Notes::find_stuck(const Watch& watch) const {
  std::map<int, nlohmann::json> notes;
  for (const nlohmann::json& note : read_notes(directory_, "call-"))
    notes.emplace(note.at("rank").get<int>(), note);
  const auto late = std::ranges::find_if(notes, [&](const auto& note) {
    return note.second.at("call") != "" &&
           wall_seconds() - note.second.at("since").template get<double>() > watch.deadline_seconds;
  });
  if (late == notes.end()) return {};
  const std::string call = late->second.at("call").get<std::string>();
  std::string host = late->second.at("host").get<std::string>(), what;
  int rank = late->first;
  // All of them wait for one that does not run, if there is one; else who waits is named.
  const auto stopped = std::ranges::find_if(notes, [](const auto& note) {
    const char state = state_of(note.second.at("pid").template get<int64_t>());
    return state == 'T' || state == 't' || state == 'D';
  });
  int missing = 0;
  while (missing < watch.ranks && notes.contains(missing)) ++missing;
  if (stopped != notes.end()) {
    rank = stopped->first;
    host = stopped->second.at("host").get<std::string>();
    what = fmt::format("(host {}, process {}) was stopped", host,
                       stopped->second.at("pid").get<int64_t>());
  } else if (missing < watch.ranks) {
    rank = missing;
    what = fmt::format("(host {}) has not begun", host);
  }
  Error error(ErrorCode::communication,
              what.empty()
                  ? fmt::format("rank {} (host {}, process {}) has been in the {} for more than "
                                "{:g} s",
                                rank, host, late->second.at("pid").get<int64_t>(), call,
                                watch.deadline_seconds)
                  : fmt::format("rank {} {}: others have been in the {} for more than {:g} s", rank,
                                what, call, watch.deadline_seconds),
              "look at that host and its network; comm.timeout says how long to wait");
  error.rank = rank;
  error.host = host;
  return error;
}

std::filesystem::path Notes::run_directory() const {
  const auto notes = read_notes(directory_, "run-directory");
  return notes.empty() ? "" : notes[0].get<std::string>();
}

}  // namespace renkei::cluster
