#include "run_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/version.h"
#include "captured_model.h"
#include "comm/collectives/broadcast.h"
#include "job/run_directory.h"

namespace renkei::python {
namespace {

timeline::Category category_of(const std::string& name) {
  for (int c = 0; c < timeline::kCategories; ++c)
    if (timeline::name_of(static_cast<timeline::Category>(c)) == name)
      return static_cast<timeline::Category>(c);
  throw Error(ErrorCode::bug, fmt::format("time of no kind '{}'", name));
}

Settings settings_of(const std::string& directory,
                     const std::map<std::string, std::string>& given) {
  Settings settings = engine_settings(given);
  job::declare_timeline_settings(settings);
  settings.set("run.dir", directory, "run_dir");
  return settings;
}

}  // namespace

RunRecord::RunRecord(World& world, const std::string& directory, const std::string& label,
                     const std::map<std::string, std::string>& given)
    : world_(world) {
  const Settings settings = settings_of(directory, given);
  char there = std::filesystem::exists(std::filesystem::path(directory) / "config.toml") ? 1 : 0;
  comm::broadcast(world.transport(), std::as_writable_bytes(std::span(&there, 1)), 0,
                  world.call("opening of the run directory"));
  directory_ = there != 0 ? std::filesystem::absolute(directory)
                          : job::make_run_directory(settings, label, world.transport());
  if (world.rank() == 0) {
    write_file_atomically(directory_ / "config.toml", settings.to_toml());
    metrics_.emplace(directory_ / "metrics.jsonl");
    tensorboard_.emplace(directory_);
  }
  phases_.open(settings, directory_, world.transport());
  recorder_ = timeline::Recorder(phases_.file());
}

void RunRecord::set_plan(const std::string& json) {
  if (world_.rank() == 0) write_file_atomically(directory_ / "plan.json", json);
}

void RunRecord::begin_step(int64_t samples) {
  const double now = now_seconds();
  if (in_step_) recorder_.end_step(now);
  if (!in_step_) phases_.skip();
  samples_ = samples;
  recorder_.begin_step(now, ++step_, samples);
  in_step_ = true;
}

void RunRecord::end_step() {
  if (!in_step_) return;
  recorder_.end_step(now_seconds());
  phases_.skip();
  in_step_ = false;
}

void RunRecord::count_step(int64_t samples, double seconds) {
  samples_ = samples;
  counted_seconds_.push_back(seconds);
}

void RunRecord::add(const std::string& name, const std::string& category, double begin) {
  const std::string& kept = *names_.insert(name).first;
  recorder_.add({.name = kept,
                 .category = category_of(category),
                 .begin = begin,
                 .end = now_seconds(),
                 .step = step_});
}

double RunRecord::seconds() {
  return now_seconds();
}

void RunRecord::phase(const std::string& name) {
  if (!in_step_) phases_.end(*names_.insert(name).first);
}

void RunRecord::log(int64_t step, const std::map<std::string, double>& values) {
  if (!metrics_) return;
  nlohmann::json line{{"step", step}, {"samples", samples_}};
  for (const auto& [name, value] : values) {
    line[name] = value;
    tensorboard_->scalar("train/" + name, step, value);
  }
  metrics_->append(line.dump());
}

void RunRecord::close() {
  end_step();
  phases_.close(directory_, world_.transport(), world_.call("end of the run"));
  if (!metrics_) return;
  tensorboard_->flush();
  std::vector<double> seconds = counted_seconds_;
  for (const timeline::StepTimes& step : recorder_.steps()) seconds.push_back(step.seconds);
  const double median = timeline::quantile(seconds, 0.5);
  const nlohmann::json summary{
      {"command", "python"},
      {"version", kVersion},
      {"ranks", world_.size()},
      {"threads_per_rank", world_.threads()},
      {"run_dir", directory_.string()},
      {"batch", samples_},
      {"steps", seconds.size()},
      {"samples_per_second", median > 0 ? static_cast<double>(samples_) / median : 0},
      {"step_seconds",
       {{"median", median},
        {"p10", timeline::quantile(seconds, 0.1)},
        {"p90", timeline::quantile(seconds, 0.9)}}},
      {"finished", true}};
  write_file_atomically(directory_ / "summary.json", summary.dump(2) + "\n");
}

}  // namespace renkei::python
