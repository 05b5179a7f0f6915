#include "cli/training_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "data/loader/loader_settings.h"
#include "data/preload.h"
#include "data/source/open_source.h"
#include "data/source_images.h"
#include "data/storage/storage_settings.h"
#include "data/synth_data.h"

namespace renkei::cli {
namespace {

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

// Larger inputs are those of networks that are trained on photos, with the usual random crops.
constexpr int kSmallInput = 64;

data::TransformOptions transform_options(const Settings& settings, ImageSize size, bool training) {
  data::TransformOptions options{.height = size.height, .width = size.width};
  const std::string& augment = settings.text("data.augment");
  const bool crop = augment == "crop" || augment == "jitter" ||
                    (augment == "auto" && std::min(size.height, size.width) > kSmallInput);
  if (crop) options.crop = training ? data::Crop::random : data::Crop::centre;
  options.flip = crop && training;
  if (augment == "jitter" && training) options.jitter = 0.4f;
  return options;
}

// Small images that don't change are decoded once and kept; everything else stays on storage.
std::unique_ptr<data::Dataset> make_dataset(std::unique_ptr<data::Source> source,
                                            const Settings& settings, const DataNeeds& needs,
                                            bool training) {
  const ImageSize size = image_size(needs, source->file_name(0));
  const data::TransformOptions transform = transform_options(settings, size, training);
  const double decoded_bytes =
      3.0 * size.height * size.width * static_cast<double>(source->count());
  const bool fits = decoded_bytes <= static_cast<double>(settings.size_bytes("data.memory"));
  const bool encoded = !source->layout();
  if (transform.crop == data::Crop::whole && encoded && fits && source->classes() > 0)
    return keep(data::preload_images(
        *source, {.height = size.height, .width = size.width, .threads = needs.threads}));
  return std::make_unique<data::SourceImages>(
      std::move(source),
      data::SourceImagesOptions{.transform = transform,
                                .seed = static_cast<uint64_t>(settings.integer("run.seed"))});
}

TrainingData open_stored(const std::string& path, const Settings& settings,
                         const DataNeeds& needs) {
  data::OpenOptions options{.path = path,
                            .input = settings.text("data.input"),
                            .label = settings.text("data.label"),
                            .threads = needs.threads};
  const auto storage = data::open_storage(path, data::storage_options(settings));
  TrainingData opened;
  opened.train = make_dataset(data::open_source(storage, options), settings, needs, true);
  options.part = data::Part::held_out;
  if (auto held_out = data::open_source(storage, options))
    opened.held_out = make_dataset(std::move(held_out), settings, needs, false);
  return opened;
}

}  // namespace

void declare_data_settings(Settings& settings) {
  settings.declare({.name = "data.source",
                    .kind = SettingKind::text,
                    .default_value = "synth",
                    .help = "random (noise), synth (drawn shapes), or a path: a folder of images "
                            "(CLASS/*.jpg, or train/ and test/ of these), tar shards, npy, npz, "
                            "HDF5 or TFRecord files; or s3://bucket/prefix of these (docs/data.md)",
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
  settings.declare({.name = "data.input",
                    .kind = SettingKind::text,
                    .default_value = "auto",
                    .help = "name of the array of inputs in npz and HDF5 files; auto: x_train, x, "
                            "images, data or arr_0"});
  settings.declare({.name = "data.label",
                    .kind = SettingKind::text,
                    .default_value = "auto",
                    .help = "name of the array of labels in npz and HDF5 files, or a .npy file; "
                            "auto: y_train, y, labels, target or arr_1"});
  settings.declare({.name = "data.augment",
                    .kind = SettingKind::choice,
                    .default_value = "auto",
                    .help = "changes to training images: none, crop (random resized crop and "
                            "mirroring), jitter (these and colours); auto: crop for inputs of more "
                            "than 64 pixels, else none",
                    .choices = {"auto", "none", "crop", "jitter"}});
  data::declare_storage_settings(settings);
  data::declare_loader_settings(settings);
}

TrainingData open_training_data(const Settings& settings, const DataNeeds& needs) {
  const std::string& source = settings.text("data.source");
  TrainingData opened;
  if (source == "random")
    opened = open_random(settings, needs);
  else if (source == "synth")
    opened = open_synth(settings, needs);
  else
    opened = open_stored(source, settings, needs);
  if (opened.train->classes() > needs.outputs)
    throw Error(ErrorCode::usage,
                fmt::format("{} has {} classes, but the model only tells {} apart", source,
                            opened.train->classes(), needs.outputs),
                fmt::format("add --set model.classes={}", opened.train->classes()));
  return opened;
}

}  // namespace renkei::cli
