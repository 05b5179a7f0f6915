#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "data/storage/storage_settings.h"
#include "report/progress.h"
#include "staging/stage.h"

namespace renkei::cli {
namespace {

struct Flags {
  std::string source;
  std::string directory;
  std::string quota;
};

void print(const Invocation& invocation, const Flags& flags, const staging::StageResult& result,
           int ranks, double seconds) {
  if (invocation.json) {
    fmt::print("{}\n", nlohmann::json{{"command", invocation.command},
                                      {"version", kVersion},
                                      {"ranks", ranks},
                                      {"hosts", result.hosts},
                                      {"directory", flags.directory},
                                      {"files", result.files},
                                      {"bytes", result.bytes},
                                      {"read_bytes", result.read_bytes},
                                      {"copied_bytes", result.copied_bytes},
                                      {"checksum", result.checksum},
                                      {"seconds", seconds}}
                           .dump(2));
    return;
  }
  fmt::print("{} files of {} in {} on {} {}; {} came from {}, the rest was there\n",
             format_count(result.files), format_size(result.bytes), flags.directory, result.hosts,
             result.hosts == 1 ? "host" : "hosts", format_size(result.read_bytes), flags.source);
}

void run_as_rank(const Invocation& invocation, RankContext& context, const Flags& flags) {
  comm::Transport& transport = context.world.transport();
  staging::StageOptions options{.source = flags.source,
                                .directory = flags.directory,
                                .storage = data::storage_options(invocation.settings),
                                .quota_bytes = flags.quota.empty() ? 0 : parse_size(flags.quota),
                                .timeout_seconds = invocation.settings.seconds("comm.timeout")};
  const bool first = transport.rank() == 0;
  report::Progress progress(report::progress_on_stderr());
  const bool shown = first && !invocation.quiet;
  if (shown)
    options.progress = [&](int64_t done, int64_t total) {
      progress.update(
          {.label = "staging", .done = done >> 20, .total = total >> 20, .unit = "MiB"});
    };
  const double begin = now_seconds();
  const staging::StageResult result = staging::stage(transport, options);
  if (shown) progress.finish();
  if (first) print(invocation, flags, result, transport.size(), now_seconds() - begin);
}

}  // namespace

Command make_data_stage_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "data stage",
          .summary = "copy a data set to the local storage of every host of the job",
          .sections = {},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments
                    .option("source", flags->source, "the data set: a path, or s3://bucket/prefix")
                    .required();
                arguments
                    .option("directory", flags->directory,
                            "a directory of each host; {host} in it is the host's name")
                    .required();
                arguments.option("--quota", flags->quota,
                                 "refuse data sets of more bytes, such as 200GiB");
              },
          .run =
              [flags](Invocation& invocation) {
                if (!flags->quota.empty()) parse_size(flags->quota);
                return run_on_ranks(invocation, [&](RankContext& context) {
                  run_as_rank(invocation, context, *flags);
                });
              }};
}

}  // namespace renkei::cli
