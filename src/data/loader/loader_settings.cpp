#include "data/loader/loader_settings.h"

#include <algorithm>
#include <thread>

namespace renkei::data {

void declare_loader_settings(Settings& settings) {
  settings.declare({.name = "data.memory",
                    .kind = SettingKind::size,
                    .default_value = "1GiB",
                    .help = "memory of the loader on each rank: batches, what is read ahead, and a "
                            "cache of samples in the rest",
                    .low = 1 << 20,
                    .high = 0x1p50});
  settings.declare({.name = "data.cache",
                    .kind = SettingKind::boolean,
                    .default_value = "true",
                    .help = "keep samples in the memory that batches and read-ahead leave"});
  settings.declare({.name = "data.disk_cache",
                    .kind = SettingKind::size,
                    .default_value = "0",
                    .help = "local disk of each rank that keeps samples which memory has no room "
                            "for; 0: none",
                    .low = 0,
                    .high = 0x1p60});
  settings.declare({.name = "data.cache_directory",
                    .kind = SettingKind::text,
                    .default_value = "auto",
                    .help = "where that is: a directory of fast storage; auto: TMPDIR or /tmp"});
  settings.declare({.name = "data.share_cache",
                    .kind = SettingKind::boolean,
                    .default_value = "false",
                    .help = "ranks keep samples for each other, each its part, in memory and on "
                            "disk; for data larger than the cache of one rank, on storage that is "
                            "slower than the network"});
  settings.declare({.name = "data.threads",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "threads that decode samples; auto: one per core",
                    .low = 1,
                    .high = 4096});
  settings.declare({.name = "data.readers",
                    .kind = SettingKind::integer,
                    .default_value = "4",
                    .help = "threads that wait for storage; more for storage with long delays",
                    .low = 1,
                    .high = 4096});
  settings.declare({.name = "data.order",
                    .kind = SettingKind::choice,
                    .default_value = "global",
                    .help = "order of the samples: global (any order is equally likely), shard "
                            "(neighbours are read together, for storage on which jumps are slow)",
                    .choices = {"global", "shard"}});
  settings.declare({.name = "data.run",
                    .kind = SettingKind::integer,
                    .default_value = "16",
                    .help = "neighbours that stay together with data.order=shard",
                    .low = 1,
                    .high = 1e9});
  settings.declare({.name = "data.bad_samples",
                    .kind = SettingKind::choice,
                    .default_value = "stop",
                    .help = "what to do with a sample that can't be read: stop, or skip it, where "
                            "another sample, always the same, takes its place",
                    .choices = {"stop", "skip"}});
}

LoaderOptions loader_options(const Settings& settings, int rank) {
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const bool skip = settings.text("data.bad_samples") == "skip";
  return {.rank = rank,
          .threads = static_cast<int>(settings.integer_unless_auto("data.threads").value_or(cores)),
          .readers = static_cast<int>(settings.integer("data.readers")),
          .memory_bytes = settings.size_bytes("data.memory"),
          .cache = settings.boolean("data.cache"),
          .disk_cache_bytes = settings.size_bytes("data.disk_cache"),
          .cache_directory =
              settings.is_auto("data.cache_directory") ? "" : settings.text("data.cache_directory"),
          .bad_samples = skip ? BadSamples::skip : BadSamples::stop,
          .seed = static_cast<uint64_t>(settings.integer("run.seed")),
          .run = settings.text("data.order") == "shard" ? settings.integer("data.run") : 1,
          .share_cache = settings.boolean("data.share_cache")};
}

}  // namespace renkei::data
