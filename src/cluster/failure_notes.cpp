#include "cluster/failure_notes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
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

std::filesystem::path Notes::run_directory() const {
  const auto notes = read_notes(directory_, "run-directory");
  return notes.empty() ? "" : notes[0].get<std::string>();
}

}  // namespace renkei::cluster
