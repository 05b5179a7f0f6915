#include "cli/training_data.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "data/image_folder.h"
#include "data/synth_data.h"

namespace renkei::cli {
namespace {

namespace fs = std::filesystem;

struct ImageSize {
  int height, width;
};

ImageSize image_size(const DataNeeds& needs, const std::string& source) {
  const auto& shape = needs.sample_shape;
  if (shape.size() != 3 || shape[0] != 3)
    throw Error(ErrorCode::usage,
                fmt::format("this model takes inputs of shape {}, but '{}' holds colour images",
                            fmt::join(shape, " × "), source),
                "choose a model for images, such as lenet, or --data random");
  return {static_cast<int>(shape[1]), static_cast<int>(shape[2])};
}

template <class Images>
std::unique_ptr<data::Dataset> keep(Images images) {
  return std::make_unique<Images>(std::move(images));
}

TrainingData open_random(const Settings& settings, const DataNeeds& needs) {
  return {.train = needs.make_random(settings.integer("data.samples"),
                                     static_cast<uint64_t>(settings.integer("run.seed"))),
          .held_out = nullptr};
}

TrainingData open_synth(const Settings& settings, const DataNeeds& needs) {
  const ImageSize size = image_size(needs, "synth");
  data::SynthDataOptions options{.images = settings.integer("data.samples"),
                                 .size_pixels = size.height,
                                 .seed = static_cast<uint64_t>(settings.integer("run.seed")),
                                 .threads = needs.threads};
  TrainingData opened{.train = keep(data::draw_synth_data(options)), .held_out = nullptr};
  options.first = options.images;
  options.images = settings.integer("data.test_samples");
  if (options.images > 0) opened.held_out = keep(data::draw_synth_data(options));
  return opened;
}

TrainingData open_folder(const fs::path& root, const DataNeeds& needs) {
  const ImageSize size = image_size(needs, root.string());
  const auto load = [&](const fs::path& part) {
    return keep(data::load_image_folder(
        {.root = part, .height = size.height, .width = size.width, .threads = needs.threads}));
  };
  const bool divided = fs::is_directory(root / "train");
  TrainingData opened{.train = load(divided ? root / "train" : root), .held_out = nullptr};
  if (divided && fs::is_directory(root / "test")) opened.held_out = load(root / "test");
  return opened;
}

}  // namespace

void declare_data_settings(Settings& settings) {
  settings.declare({.name = "data.source",
                    .kind = SettingKind::text,
                    .default_value = "synth",
                    .help = "random (noise), synth (drawn shapes), or a directory with images: "
                            "DIR/train/CLASS/*.jpg and DIR/test/CLASS/*.jpg, or DIR/CLASS/*.jpg",
                    .flag = "--data"});
  settings.declare({.name = "data.samples",
                    .kind = SettingKind::integer,
                    .default_value = "4096",
                    .help = "training samples of random and synth data",
                    .low = 1,
                    .high = 1e12});
  settings.declare({.name = "data.test_samples",
                    .kind = SettingKind::integer,
                    .default_value = "1000",
                    .help = "held-out samples of synth data",
                    .low = 0,
                    .high = 1e12});
}

TrainingData open_training_data(const Settings& settings, const DataNeeds& needs) {
  const std::string& source = settings.text("data.source");
  TrainingData opened;
  if (source == "random")
    opened = open_random(settings, needs);
  else if (source == "synth")
    opened = open_synth(settings, needs);
  else if (fs::is_directory(source))
    opened = open_folder(source, needs);
  else if (fs::exists(source))
    throw Error(ErrorCode::usage, fmt::format("{} is a file, and --data takes a directory", source),
                "give a directory with one sub-directory per class");
  else
    throw Error(ErrorCode::data, fmt::format("there is no data set at '{}'", source),
                "use --data random or --data synth, or make one: renkei data synth DIR");
  if (opened.train->classes() > needs.outputs)
    throw Error(ErrorCode::usage,
                fmt::format("{} has {} classes, but the model only tells {} apart", source,
                            opened.train->classes(), needs.outputs),
                fmt::format("add --set model.classes={}", opened.train->classes()));
  return opened;
}

}  // namespace renkei::cli
