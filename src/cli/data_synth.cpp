#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "data/pack/pack.h"
#include "data/shapes.h"
#include "data/source/synth_source.h"
#include "data/storage/storage_settings.h"
#include "data/synth.h"
#include "report/progress.h"

namespace renkei::cli {
namespace {

struct Flags {
  data::SynthOptions options;
  bool shards = false;
  std::string shard_size = "256MiB";
  int height = 0;  // 0: as the width
};

void write_shards(const Flags& flags, const data::SynthOptions& options, const Settings& settings) {
  data::SynthSourceOptions drawn{.images = options.train_images,
                                 .width = options.size_pixels,
                                 .height = flags.height > 0 ? flags.height : options.size_pixels,
                                 .seed = options.seed,
                                 .quality = options.quality};
  const auto train = data::make_synth_source(drawn);
  drawn.first = options.train_images;
  drawn.images = options.test_images;
  const auto test = data::make_synth_source(drawn);
  std::vector<data::PackInput> inputs{{.name = "train", .source = *train}};
  if (options.test_images > 0) inputs.push_back({.name = "test", .source = *test});
  data::pack(inputs, {.directory = options.directory,
                      .storage = data::storage_options(settings),
                      .shard_bytes = parse_size(flags.shard_size),
                      .threads = options.threads,
                      .progress = options.progress});
}

int run(Invocation& invocation, const Flags& flags) {
  data::SynthOptions options = flags.options;
  const Settings& settings = invocation.settings;
  options.seed = static_cast<uint64_t>(settings.integer("run.seed"));
  options.threads = static_cast<int>(settings.integer_unless_auto("run.threads").value_or(0));
  report::Progress progress(report::progress_on_stderr());
  if (!invocation.quiet)
    options.progress = [&](int64_t done, int64_t total) {
      progress.update({.label = "drawing", .done = done, .total = total, .unit = "images"});
    };
  const double begin = now_seconds();
  if (flags.shards)
    write_shards(flags, options, settings);
  else
    data::write_synth(options);
  if (!invocation.quiet) progress.finish();

  const int64_t images = options.train_images + options.test_images;
  if (invocation.json)
    fmt::print("{}\n", nlohmann::json{{"command", invocation.command},
                                      {"version", kVersion},
                                      {"format", flags.shards ? "tar" : "image folder"},
                                      {"directory", options.directory.string()},
                                      {"samples", images},
                                      {"classes", data::shape_names().size()},
                                      {"seconds", now_seconds() - begin}}
                           .dump(2));
  else
    fmt::print("{} images of {} shapes in {}\ntrain on them with: renkei train --data {}\n",
               format_count(images), data::shape_names().size(), options.directory.string(),
               options.directory.string());
  return 0;
}

}  // namespace

Command make_data_synth_command() {
  const auto flags = std::make_shared<Flags>();
  data::SynthOptions* const options = &flags->options;  // lives as long as the flags
  return {.name = "data synth",
          .summary = "draw a data set of labelled images that a network can learn",
          .sections = {},
          .add_flags =
              [flags, options](Arguments& arguments) {
                arguments.option("directory", options->directory, "where to write it").required();
                arguments.option("--images", options->train_images, "training images")
                    .show_default()
                    .range(int64_t{1}, int64_t{1} << 40);
                arguments.option("--test-images", options->test_images, "held-out images")
                    .show_default()
                    .range(int64_t{0}, int64_t{1} << 40);
                arguments.option("--size", options->size_pixels, "width and height in pixels")
                    .show_default()
                    .range(8, 4096);
                arguments.option("--quality", options->quality, "JPEG quality")
                    .show_default()
                    .range(1, 100);
                arguments.flag("--shards", flags->shards, "write tar shards instead of a folder");
                arguments.option("--shard-size", flags->shard_size, "about this many bytes a shard")
                    .show_default();
                arguments
                    .option("--height", flags->height,
                            "height of images in shards, where it is not the width")
                    .range(8, 4096);
              },
          .run = [flags](Invocation& invocation) { return run(invocation, *flags); }};
}

}  // namespace renkei::cli
