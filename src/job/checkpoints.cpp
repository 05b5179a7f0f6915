#include "job/checkpoints.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "comm/collectives/gather.h"
#include "plan/plan_file.h"

namespace renkei::job {
namespace {

// A rank's part of a checkpoint on its way to rank 0: a shard, or why there is none.
constexpr char kFailed = '!';

std::string write_part(const std::filesystem::path& directory, int rank,
                       std::span<const checkpoint::Run> runs, bool disk_is_full) {
  try {
    make_directories(directory);
    if (disk_is_full) throw_file_error("write", directory / checkpoint::shard_name(rank), ENOSPC);
    return checkpoint::to_text(
        checkpoint::write_shard(directory / checkpoint::shard_name(rank), runs));
  } catch (const std::exception& error) {
    return kFailed + std::string(error.what());
  }
}

// Returns what went wrong; empty: nothing.
std::string write_manifest(const std::filesystem::path& directory,
                           const checkpoint::Manifest& manifest,
                           const checkpoint::Retention& keep) {
  try {
    const std::string text = checkpoint::to_text(manifest);
    checkpoint::parse_manifest(text, "the manifest");  // nothing that could not be read again
    write_file_atomically(directory / "manifest.json", text);
    for (const std::string& failure :
         checkpoint::prune(directory.parent_path(), manifest.progress.step, keep))
      return "an old checkpoint could not be removed: " + failure;
    return {};
  } catch (const std::exception& error) {
    return fmt::format("the checkpoint of step {} could not be saved: {}", manifest.progress.step,
                       error.what());
  }
}

}  // namespace

CheckpointTimes parse_checkpoint_times(const std::string& text) {
  if (text == "off") return {};
  if (text == "epoch") return {.steps = {}, .seconds = {}, .epochs = true};
  const Error wrong(ErrorCode::usage, fmt::format("'{}' does not say when to save", text),
                    "write 30min, 500steps, epoch or off");
  for (const std::string_view unit : {"steps", "step"})
    if (text.ends_with(unit)) {
      int64_t steps = 0;
      const char* end = text.data() + text.size() - unit.size();
      const auto parsed = std::from_chars(text.data(), end, steps);
      if (parsed.ec != std::errc() || parsed.ptr != end || steps < 1) throw wrong;
      return {.steps = steps, .seconds = {}};
    }
  try {
    const double seconds = parse_duration(text);
    if (!(seconds > 0)) throw wrong;
    return {.steps = {}, .seconds = seconds};
  } catch (const Error&) {
    throw wrong;
  }
}

Checkpoints::Checkpoints(Session& session, CheckpointOptions options)
    : session_(session), options_(std::move(options)), begun_(now_seconds()) {}

bool Checkpoints::first() const {
  return session_.communicator().transport().rank() == 0;
}

void Checkpoints::warn(const std::string& text) const {
  if (first() && options_.warn) options_.warn(text);
}

run::Votes Checkpoints::votes() const {
  // The clock of the first rank counts.
  const bool late =
      options_.every.seconds && first() && now_seconds() - begun_ >= *options_.every.seconds;
  return {.save = late ? 1.0 : 0.0, .written = writing_ && writing_->done() ? 1.0 : 0.0};
}

bool Checkpoints::is_due() const {
  const int64_t done = session_.next_step();
  return session_.votes().save > 0 || (options_.every.steps && done % *options_.every.steps == 0) ||
         (options_.every.epochs && session_.at_end_of_epoch());
}

void Checkpoints::after_step() {
  const int ranks = session_.communicator().transport().size();
  if (writing_ && session_.votes().written == ranks) complete();
  if (finishing_ && finishing_->done()) wait_for_manifest();
  if (!is_due()) return;
  // One at a time: who saves more often than the disk can write waits for it.
  if (writing_) complete();
  begin();
}

void Checkpoints::begin() {
  begun_ = now_seconds();
  begun_step_ = session_.next_step();
  wait_for_manifest();
  manifest_ = {.progress = session_.progress(),
               .settings = options_.settings,
               .plan = plan::to_json(session_.plan()).dump(),
               .notes = options_.notes};
  std::vector<checkpoint::Run> runs = session_.runs();
  size_t bytes = 0;
  for (const checkpoint::Run& run : runs) bytes += run.bytes.size();
  if (bytes > copy_bytes_) {
    copy_ = std::make_shared_for_overwrite<std::byte[]>(bytes);
    copy_bytes_ = bytes;
  }
  size_t at = 0;
  for (checkpoint::Run& run : runs) {
    std::memcpy(copy_.get() + at, run.bytes.data(), run.bytes.size());
    run.bytes = {copy_.get() + at, run.bytes.size()};
    at += run.bytes.size();
  }
  writing_.emplace([directory = checkpoint::directory_of(options_.directory, begun_step_),
                    rank = session_.communicator().transport().rank(), runs = std::move(runs),
                    keep = copy_,
                    full = options_.disk_is_full && options_.disk_is_full(begun_step_)] {
    return write_part(directory, rank, runs, full);
  });
}

// All parts are on the disk.
bool Checkpoints::complete() {
  if (!writing_->wait(options_.timeout_seconds))
    throw Error(ErrorCode::data,
                fmt::format("saving the checkpoint of step {} takes longer than {}", begun_step_,
                            format_duration(options_.timeout_seconds)),
                fmt::format("see whether {} can be written to", options_.directory.string()));
  const std::string part = writing_->take();
  writing_.reset();
  const auto parts =
      comm::gather_texts(session_.communicator().transport(), part,
                         {.operation = "saving", .timeout_seconds = options_.timeout_seconds});
  if (!first()) return true;
  for (const std::string& text : parts) {
    if (!text.starts_with(kFailed)) {
      checkpoint::add_shard(manifest_, checkpoint::shard_from_text(text));
      continue;
    }
    warn(fmt::format("the checkpoint of step {} could not be saved, training goes on: {}",
                     begun_step_, text.substr(1)));
    return false;
  }
  checkpoint::sort_pieces(manifest_);
  finishing_.emplace([directory = checkpoint::directory_of(options_.directory, begun_step_),
                      manifest = std::move(manifest_),
                      keep = options_.keep] { return write_manifest(directory, manifest, keep); });
  return true;
}

void Checkpoints::wait_for_manifest() {
  if (!finishing_) return;
  if (!finishing_->wait(options_.timeout_seconds))
    throw Error(ErrorCode::data,
                fmt::format("writing the manifest of a checkpoint takes longer than {}",
                            format_duration(options_.timeout_seconds)),
                fmt::format("see whether {} can be written to", options_.directory.string()));
  const std::string failure = finishing_->take();
  finishing_.reset();
  if (!failure.empty()) warn(failure);
}

bool Checkpoints::save() {
  finish();
  begin();
  int64_t saved = complete();
  if (saved && first()) {
    wait_for_manifest();
    const auto found = checkpoint::find_checkpoints(options_.directory);
    saved = !found.empty() && found.front().step == begun_step_ && found.front().has_manifest;
  }
  session_.communicator().broadcast(
      comm::Buffer(std::span(&saved, 1)), 0,
      {.operation = "saving", .timeout_seconds = options_.timeout_seconds});
  return saved != 0;
}

void Checkpoints::finish() {
  if (writing_) complete();
  wait_for_manifest();
}

bool train(Session& session, run::Observer& observer, Checkpoints& checkpoints,
           const std::function<bool()>& wants_to_stop) {
  while (session.next_step() < session.steps()) {
    run::Votes votes = checkpoints.votes();
    votes.stop = wants_to_stop() ? 1 : 0;
    session.vote(votes);
    const run::StepReport report = session.step();
    observer.on_step(report);
    if (session.at_end_of_epoch())
      if (const auto evaluation = session.evaluate())
        observer.on_evaluation(report.step, *evaluation);
    checkpoints.after_step();
    if (session.votes().stop > 0 && session.next_step() < session.steps()) {
      checkpoints.save();
      return false;
    }
  }
  checkpoints.finish();
  return true;
}

void save_checkpoint(Session& session, const std::filesystem::path& directory,
                     const std::map<std::string, std::string>& notes) {
  std::string failure;
  Checkpoints checkpoints(session, {.directory = directory,
                                    .keep = {.last = INT32_MAX},
                                    .notes = notes,
                                    .warn = [&](const std::string& text) { failure = text; }});
  if (!checkpoints.save())
    throw Error(ErrorCode::data, failure.empty() ? "rank 0 could not save" : failure,
                "check the disk");
}

std::map<std::string, std::string> load_checkpoint(Session& session,
                                                   const std::filesystem::path& directory) {
  std::string why;
  auto reader = checkpoint::open_newest(directory, session.communicator().transport(),
                                        {.operation = "loading of a checkpoint"},
                                        [&](const std::string& text) { why += "; " + text; });
  if (!reader)
    throw Error(ErrorCode::data,
                fmt::format("{} has no checkpoint that is whole{}", directory.string(), why),
                "name the directory that has step-… directories in it");
  session.restore(*reader);
  return reader->manifest().notes;
}

}  // namespace renkei::job
