#include "job/run_timeline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "comm/clock_offset.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/gather.h"
#include "timeline/chrome_trace.h"

namespace renkei::job {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBeganVariable = "RENKEI_JOB_BEGAN";

constexpr int64_t kSlicesOfOperations = 16;  // for each slice of a task, about

// When this process was started, by now_seconds(); the system tells it in hundredths of a second.
double process_start() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // The name of the program, in brackets, may have blanks in it.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) continue;
  const double start = std::atof(field.c_str()) / static_cast<double>(sysconf(_SC_CLK_TCK));
  const double now = now_seconds();
  return start > 0 && start < now && now - start < 3600 ? start : now;
}

timeline::ClockOffset compare_clocks(comm::Transport& transport, const comm::Call& call) {
  const auto found = comm::clock_difference(transport, real_clock(), call);
  return {.at = now_seconds(), .seconds = found.seconds, .error = found.error};
}

// A run that goes on after a failure keeps what was recorded before: timeline/earlier-1, -2 …
void put_aside(const fs::path& directory, int rank) {
  const std::string events = fmt::format("rank-{}.events", rank);
  if (!fs::exists(directory / events)) return;
  int start = 1;
  while (fs::exists(directory / fmt::format("earlier-{}", start) / events)) ++start;
  const fs::path aside = directory / fmt::format("earlier-{}", start);
  make_directories(aside);
  for (const std::string& name : {events, fmt::format("rank-{}.steps", rank)})
    fs::rename(directory / name, aside / name);
}

// Where hosts do not share a file system, rank 0 gets the files of the others.
void gather_files(const fs::path& directory, comm::Transport& transport, const comm::Call& call) {
  for (const char* what : {"events", "steps"}) {
    const auto file_of = [&](int rank) {
      return directory / fmt::format("rank-{}.{}", rank, what);
    };
    std::vector<char> missing(static_cast<size_t>(transport.size()));
    if (transport.rank() == 0)
      for (int rank = 0; rank < transport.size(); ++rank)
        missing[static_cast<size_t>(rank)] = fs::exists(file_of(rank)) ? 0 : 1;
    comm::broadcast(transport, std::as_writable_bytes(std::span(missing)), 0, call);
    const bool mine = missing[static_cast<size_t>(transport.rank())] != 0;
    const auto texts = comm::gather_texts(
        transport, mine ? read_file(file_of(transport.rank())) : std::string(), call);
    for (size_t rank = 0; rank < texts.size(); ++rank)
      if (!texts[rank].empty()) write_file_atomically(file_of(static_cast<int>(rank)), texts[rank]);
  }
}

}  // namespace

void declare_timeline_settings(Settings& settings) {
  settings.declare({.name = "train.timeline",
                    .kind = SettingKind::choice,
                    .default_value = "tasks",
                    .help = "what is recorded of every rank, for renkei report and, as "
                            "timeline.json, for Perfetto; ops: also each operation of a task",
                    .choices = {"off", "tasks", "ops"},
                    .flag = "--timeline"});
  settings.declare({.name = "train.timeline_events",
                    .kind = SettingKind::integer,
                    .default_value = "65536",
                    .help = "slices of the timeline that each rank keeps, the last ones (with "
                            "operations 16 times as many); sums of all steps are kept in any case",
                    .low = 16,
                    .high = 1e9});
}

void note_beginning_for_ranks() {
  setenv(kBeganVariable, fmt::format("{:.6f}", now_seconds()).c_str(), 1);
}

Phases::Phases() {
  const double process = process_start();
  const char* const told = std::getenv(kBeganVariable);
  began_ = told ? std::min(std::atof(told), process) : process;
  if (process > began_) before_.push_back({.name = "launch", .begin = began_, .end = process});
  now_ = process;
  end("start of the program and MPI");
}

void Phases::end(std::string_view name) {
  const timeline::Event phase{.name = name, .begin = now_, .end = now_seconds()};
  now_ = phase.end;
  if (file_)
    file_->add(phase);
  else
    before_.push_back(phase);
}

void Phases::skip() {
  now_ = now_seconds();
}

void Phases::open(const Settings& settings, const fs::path& run_directory,
                  comm::Transport& transport) {
  if (settings.text("train.timeline") == "off") return;
  const comm::Call call{.operation = "comparison of clocks",
                        .timeout_seconds = settings.seconds("comm.timeout")};
  double began = began_;  // of rank 0, whose clock all go by
  comm::broadcast(transport, std::as_writable_bytes(std::span(&began, 1)), 0, call);
  const int rank = transport.rank();
  put_aside(run_directory / "timeline", rank);
  const int64_t most = settings.integer("train.timeline_events") *
                       (settings.text("train.timeline") == "ops" ? kSlicesOfOperations : 1);
  file_ = std::make_unique<timeline::RankFile>(
      timeline::RankFileOptions{.directory = run_directory / "timeline", .most_events = most},
      timeline::RankInfo{.rank = rank,
                         .ranks = transport.size(),
                         .host = transport.host(rank),
                         .origin = began,
                         .wall_seconds = wall_seconds() - (now_seconds() - began_),
                         .first = compare_clocks(transport, call)});
  for (const timeline::Event& phase : std::exchange(before_, {})) file_->add(phase);
}

void Phases::close(const fs::path& run_directory, comm::Transport& transport,
                   const comm::Call& call) {
  if (!file_) return;
  file_->set_last_offset(compare_clocks(transport, call));
  end("end");
  file_->finish();
  gather_files(run_directory / "timeline", transport, call);
  if (transport.rank() == 0)
    timeline::write_chrome_trace(timeline::read_timeline(run_directory / "timeline"),
                                 run_directory / "timeline.json");
}

}  // namespace renkei::job
