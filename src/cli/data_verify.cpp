#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/data_sources.h"
#include "data/pack/verify.h"

namespace renkei::cli {
namespace {

struct Flags {
  std::string source;
  data::VerifyOptions options;
};

int run(Invocation& invocation, const Flags& flags) {
  const OpenedSources sources = open_sources(invocation, flags.source);
  int64_t samples = 0;
  nlohmann::json bad = nlohmann::json::array();
  sources.for_each([&](const char* name, const data::Source& source) {
    data::VerifyOptions options = flags.options;
    options.threads = threads_of(invocation.settings);
    report::Progress progress(report::progress_on_stderr());
    options.progress = show_progress(invocation, progress, fmt::format("verifying {}", name));
    for (const data::BadSample& found : data::verify(source, options))
      bad.push_back({{"part", name}, {"sample", found.sample}, {"reason", found.reason}});
    if (!invocation.quiet) progress.finish();
    samples += source.count();
  });
  if (invocation.json)
    fmt::print("{}\n", nlohmann::json{{"command", invocation.command},
                                      {"version", kVersion},
                                      {"samples", samples},
                                      {"bad", bad}}
                           .dump(2));
  else
    for (const auto& sample : bad)
      fmt::print("{} sample {}: {}\n", sample["part"].get<std::string>(),
                 sample["sample"].get<int64_t>(), sample["reason"].get<std::string>());
  if (bad.empty()) {
    if (!invocation.json)
      fmt::print("all {} samples are as they should be\n", format_count(samples));
    return 0;
  }
  // The list is the answer; what follows says so to people.
  if (!invocation.json)
    fmt::print("{} of {} samples are bad\n", format_count(static_cast<int64_t>(bad.size())),
               format_count(samples));
  return static_cast<int>(ErrorCode::check);
}

}  // namespace

Command make_data_verify_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "data verify",
          .summary = "read every sample and compare its checksum",
          .sections = {},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments.option("source", flags->source, "the data set").required();
                arguments.flag("--decode", flags->options.decode, "also decode every image whole");
              },
          .run = [flags](Invocation& invocation) { return run(invocation, *flags); }};
}

}  // namespace renkei::cli
