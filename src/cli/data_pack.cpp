#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/data_sources.h"
#include "data/pack/pack.h"
#include "data/storage/storage_settings.h"

namespace renkei::cli {
namespace {

struct Flags {
  std::string source;
  std::string shard_size = "256MiB";
  bool keep_progressive = false;
  data::PackOptions options;
};

int run(Invocation& invocation, const Flags& flags) {
  data::PackOptions options = flags.options;
  options.shard_bytes = parse_size(flags.shard_size);
  options.baseline = !flags.keep_progressive;
  options.threads = threads_of(invocation.settings);
  options.storage = data::storage_options(invocation.settings);
  report::Progress progress(report::progress_on_stderr());
  options.progress = show_progress(invocation, progress, "packing");

  const double begin = now_seconds();
  const OpenedSources sources = open_sources(invocation, flags.source);
  std::vector<data::PackInput> inputs;
  sources.for_each([&](const char* name, const data::Source& source) {
    inputs.push_back({.name = name, .source = source});
  });
  const data::PackResult result = data::pack(inputs, options);
  if (!invocation.quiet) progress.finish();
  for (const data::StoredField& field : sources.train->fields())
    if (!invocation.quiet && field.name != data::kInput && !field.is_label())
      fmt::print(stderr, "note: shards have no place for the field '{}'; it was left out\n",
                 field.name);

  if (invocation.json)
    fmt::print("{}\n", nlohmann::json{{"command", invocation.command},
                                      {"version", kVersion},
                                      {"format", "tar"},
                                      {"directory", options.directory},
                                      {"samples", result.samples},
                                      {"bytes", result.bytes},
                                      {"shards", result.shards},
                                      {"shards_found", result.shards_found},
                                      {"checksum", result.checksum},
                                      {"seconds", now_seconds() - begin}}
                           .dump(2));
  else
    fmt::print("{} samples in {} shards of {} in {}{}\n", format_count(result.samples),
               result.shards, format_size(result.bytes), options.directory,
               result.shards_found > 0
                   ? fmt::format(" ({} were there from an earlier run)", result.shards_found)
                   : "");
  return 0;
}

}  // namespace

Command make_data_pack_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "data pack",
          .summary = "write any data set as tar shards with indices, which are fast to read",
          .sections = {},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments.option("source", flags->source, "the data set to read").required();
                arguments
                    .option("directory", flags->options.directory,
                            "where to write the shards: a new directory, or s3://bucket/prefix")
                    .required();
                arguments.option("--shard-size", flags->shard_size, "about this many bytes a shard")
                    .show_default();
                arguments
                    .option("--resize", flags->options.resize,
                            "shrink images to this shorter side; 0: leave them")
                    .show_default()
                    .range(0, 65'536);
                arguments
                    .option("--quality", flags->options.quality,
                            "JPEG quality of images that are shrunk")
                    .show_default()
                    .range(1, 100);
                arguments
                    .option("--raw", flags->options.raw_share,
                            "share of the images to store as pixels, 0 to 1")
                    .show_default()
                    .range(0.0, 1.0);
                arguments.flag("--keep-progressive", flags->keep_progressive,
                               "do not rewrite progressive JPEGs as baseline ones");
              },
          .run = [flags](Invocation& invocation) { return run(invocation, *flags); }};
}

}  // namespace renkei::cli
