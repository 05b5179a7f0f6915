#include "base/settings.h"
#include "plan/search.h"

namespace renkei::plan {

void declare_settings(Settings& settings) {
  settings.declare({.name = "plan.cluster",
                    .kind = SettingKind::text,
                    .default_value = "local",
                    .help = "machine to plan for: local, flow-type2, mn1, tsubame3 or a TOML file",
                    .flag = "--cluster"});
  settings.declare({.name = "plan.devices",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "devices to plan for; by itself all of the cluster",
                    .low = 1,
                    .high = 1 << 20,
                    .flag = "--devices"});
  settings.declare({.name = "plan.memory",
                    .kind = SettingKind::size,
                    .default_value = "auto",
                    .help = "memory of each device; by itself what the cluster has",
                    .low = 1,
                    .high = 1e18,
                    .flag = "--memory"});
  settings.declare({.name = "plan.stages",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "stages of the pipeline; 1 is data parallel",
                    .low = 1,
                    .high = 1 << 20,
                    .flag = "--stages"});
  std::vector<std::string> schedules{"auto"};
  for (const std::string_view name : schedule_names()) schedules.emplace_back(name);
  settings.declare({.name = "plan.schedule",
                    .kind = SettingKind::choice,
                    .default_value = "auto",
                    .help = "order of the work; accumulate is data parallel",
                    .choices = schedules,
                    .flag = "--schedule"});
  settings.declare({.name = "plan.sharded_optimizer",
                    .kind = SettingKind::choice,
                    .default_value = "auto",
                    .help = "divide the optimizer's state among the replicas of a stage",
                    .choices = {"auto", "yes", "no"}});
  settings.declare({.name = "plan.tensor",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "ranks that compute each layer together, a part each; by itself 1, or "
                            "with --plan auto what is best",
                    .low = 1,
                    .high = 1 << 20,
                    .flag = "--tensor"});
  settings.declare({.name = "plan.shard",
                    .kind = SettingKind::text,
                    .default_value = "",
                    .help = "parameters whose dimension is split over these ranks, or that stay "
                            "whole: NAME:DIMENSION=model or NAME=none, apart by commas; names may "
                            "have * in them",
                    .flag = "--shard"});
  settings.declare({.name = "plan.optimizer_state",
                    .kind = SettingKind::real,
                    .default_value = "1",
                    .help = "optimizer state in bytes per byte of parameters: 1 momentum, 2 Adam",
                    .low = 0,
                    .high = 16});
  settings.declare({.name = "plan.time_limit",
                    .kind = SettingKind::duration,
                    .default_value = "60s",
                    .help = "end the search after this time with the best so far",
                    .low = 0,
                    .high = 1e9,
                    .flag = "--time-limit"});
}

SearchOptions search_options(const Settings& settings) {
  SearchOptions options{.time_limit_seconds = settings.seconds("plan.time_limit")};
  if (const auto stages = settings.integer_unless_auto("plan.stages"))
    options.stages = static_cast<int>(*stages);
  if (const std::string& name = settings.text("plan.schedule"); name != "auto")
    options.schedules = {parse_schedule(name)};
  if (const std::string& sharded = settings.text("plan.sharded_optimizer"); sharded != "auto")
    options.sharded = {sharded == "yes"};
  return options;
}

}  // namespace renkei::plan
