#include "job/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "data/loader/loader_settings.h"
#include "data/preload.h"
#include "data/source/open_source.h"
#include "data/storage/storage_settings.h"
#include "data/stored_data.h"
#include "data/synth_data.h"

namespace renkei::job {
namespace {

struct ImageSize {
  int height, width;
};

// "0.5", or "0.485,0.456,0.406".
std::array<float, 3> channels_of(const Settings& settings, const char* name) {
  const std::string& text = settings.text(name);
  std::vector<float> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (numbers.size() <= 3) {
    float number = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc{} || !std::isfinite(number)) break;
    numbers.push_back(number);
    at = parsed.ptr;
    if (at == end || *at != ',') break;
    ++at;
  }
  if (at == end && numbers.size() == 1) return {numbers[0], numbers[0], numbers[0]};
  if (at == end && numbers.size() == 3) return {numbers[0], numbers[1], numbers[2]};
  throw Error(ErrorCode::usage, fmt::format("{} is '{}', neither one number nor three", name, text),
              "write it as 0.5 or 0.485,0.456,0.406");
}

bool takes_image(const networks::InputShape& input) {
  return input.shape.size() == 3 && input.shape[0] == 3;
}

// All images of a sample are cut and scaled alike.
ImageSize image_size(const DataNeeds& needs, const std::string& source) {
  std::vector<networks::InputShape> images;
  std::ranges::copy_if(needs.inputs, std::back_inserter(images), takes_image);
  if (images.empty())
    throw Error(ErrorCode::usage,
                fmt::format("this model takes inputs of shape {}, but '{}' holds colour images",
                            fmt::join(needs.inputs.at(0).shape, " × "), source),
                "choose a model for images, such as lenet, or --data random");
  for (const networks::InputShape& other : images)
    if (other.shape != images[0].shape)
      throw Error(ErrorCode::usage,
                  fmt::format("the inputs {} and {} are images of different sizes", images[0].name,
                              other.name),
                  "store them as arrays of numbers of these shapes");
  return {static_cast<int>(images[0].shape[1]), static_cast<int>(images[0].shape[2])};
}

// Images and labels of "input" and "target", under the names that the program has for them.
std::unique_ptr<data::Dataset> keep(data::MemoryImages images, const DataNeeds& needs,
                                    const data::FieldMap& map) {
  std::string names[] = {std::string(data::kInput), std::string(data::kTarget)};
  for (const auto& [input, field] : data::match_inputs(
           map, wanted_inputs(needs), {std::string(data::kInput), std::string(data::kTarget)}))
    names[field == data::kInput ? 0 : 1] = input;
  images.name_fields(names[0], names[1]);
  return std::make_unique<data::MemoryImages>(std::move(images));
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
                                 .threads = needs.threads,
                                 .normalisation = normalisation_of(settings)};
  TrainingData opened{.train = keep(data::draw_synth_data(options), needs, {}),
                      .held_out = nullptr};
  options.first = options.images;
  options.images = settings.integer("data.test_samples");
  if (options.images > 0) opened.held_out = keep(data::draw_synth_data(options), needs, {});
  return opened;
}

// Larger inputs are those of networks that are trained on photos, with the usual random crops.
constexpr int kSmallInput = 64;

data::TransformOptions transform_options(const Settings& settings, ImageSize size, bool training) {
  data::TransformOptions options{
      .height = size.height, .width = size.width, .normalisation = normalisation_of(settings)};
  const std::string& augment = settings.text("data.augment");
  const bool crop = augment == "crop" || augment == "jitter" ||
                    (augment == "auto" && std::min(size.height, size.width) > kSmallInput);
  if (crop) options.crop = training ? data::Crop::random : data::Crop::centre;
  options.flip = crop && training;
  if (augment == "jitter" && training) options.jitter = 0.4f;
  return options;
}

bool is_image(const data::StoredField& field) {
  return !field.is_label() && !field.layout;
}

// Labelled images and nothing else.
bool is_plain(const data::Source& source) {
  const auto& fields = source.fields();
  return fields.size() == 2 && fields[0].name == data::kInput && is_image(fields[0]) &&
         fields[1].is_label();
}

std::vector<std::string> names_of(const data::Source& source) {
  std::vector<std::string> names;
  for (const data::StoredField& field : source.fields()) names.push_back(field.name);
  return names;
}

data::FieldMap match_fields(const data::Source& source, const Settings& settings,
                            const DataNeeds& needs) {
  const std::vector<std::string> names = names_of(source);
  const data::FieldMap map = data::parse_field_map(settings.text("data.fields"));
  const bool mapped = std::ranges::count(map, needs.target, &data::FieldMapping::input) > 0;
  if (!needs.target.empty() && !mapped && std::ranges::count(names, needs.target) == 0 &&
      std::ranges::count(names, data::kTarget) == 0)
    throw Error(
        ErrorCode::data, fmt::format("the samples of {} have no labels", source.file_name(0)),
        fmt::format("docs/data.md says where labels are looked for; any field may be the target: "
                    "--set data.fields={}=NAME",
                    needs.target));
  return data::match_inputs(map, wanted_inputs(needs), names);
}

// Small images that don't change are decoded once and kept; everything else stays on storage.
std::unique_ptr<data::Dataset> make_dataset(std::unique_ptr<data::Source> source,
                                            const Settings& settings, const DataNeeds& needs,
                                            bool training) {
  data::StoredDataOptions options{.seed = static_cast<uint64_t>(settings.integer("run.seed")),
                                  .map = match_fields(*source, settings, needs)};
  for (const networks::InputShape& input : needs.inputs)
    options.inputs.push_back({input.name, input.shape});
  const bool has_images = std::ranges::any_of(source->fields(), [&](const auto& field) {
    return is_image(field) &&
           std::ranges::count(options.map, field.name, &data::FieldMapping::field) > 0;
  });
  if (has_images || std::ranges::any_of(needs.inputs, takes_image)) {
    const ImageSize size = image_size(needs, source->file_name(0));
    options.transform = transform_options(settings, size, training);
    const double decoded_bytes =
        3.0 * size.height * size.width * static_cast<double>(source->count());
    const bool fits = decoded_bytes <= static_cast<double>(settings.size_bytes("data.memory"));
    if (options.transform.crop == data::Crop::whole && is_plain(*source) &&
        options.map.size() == 2 && fits && source->classes() > 0)
      return keep(data::preload_images(*source, {.height = size.height,
                                                 .width = size.width,
                                                 .threads = needs.threads,
                                                 .normalisation = normalisation_of(settings)}),
                  needs, data::parse_field_map(settings.text("data.fields")));
  }
  return std::make_unique<data::StoredData>(std::move(source), options);
}

TrainingData open_stored(const std::string& path, const Settings& settings,
                         const DataNeeds& needs) {
  data::OpenOptions options{.path = path,
                            .input = settings.text("data.input"),
                            .label = settings.text("data.label"),
                            .threads = needs.threads};
  const auto storage = data::open_storage(path, data::storage_options(settings));
  TrainingData opened;
  opened.train = make_dataset(data::open_source(storage, options), settings, needs, needs.training);
  options.part = data::Part::held_out;
  if (auto held_out = data::open_source(storage, options))
    opened.held_out = make_dataset(std::move(held_out), settings, needs, false);
  return opened;
}

}  // namespace

std::vector<data::WantedInput> wanted_inputs(const DataNeeds& needs) {
  std::vector<data::WantedInput> wanted;
  for (const networks::InputShape& input : needs.inputs)
    wanted.push_back({.name = input.name, .target = input.name == needs.target});
  if (!needs.target.empty() && std::ranges::count(wanted, true, &data::WantedInput::target) == 0)
    wanted.push_back({.name = needs.target, .target = true});
  return wanted;
}

data::Normalisation normalisation_of(const Settings& settings) {
  data::Normalisation result{.mean = channels_of(settings, "data.mean"),
                             .deviation = channels_of(settings, "data.std")};
  if (std::ranges::any_of(result.deviation, [](float value) { return !(value > 0); }))
    throw Error(
        ErrorCode::usage,
        fmt::format("data.std is {}, and numbers are divided by it", settings.text("data.std")),
        "choose numbers above 0");
  return result;
}

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
  settings.declare({.name = "data.fields",
                    .kind = SettingKind::text,
                    .default_value = "auto",
                    .help = "which field of the data is which input of the program, such as "
                            "input=images,target=labels; auto: those of the same name (renkei "
                            "data info lists them)"});
  settings.declare({.name = "data.mean",
                    .kind = SettingKind::text,
                    .default_value = "0.5",
                    .help = "networks get (byte / 255 - mean) / std of an image: one number, or "
                            "three for red, green and blue, such as 0.485,0.456,0.406"});
  settings.declare({.name = "data.std",
                    .kind = SettingKind::text,
                    .default_value = "0.25",
                    .help = "see data.mean; such as 0.229,0.224,0.225"});
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
  const bool made = source == "random" || source == "synth";
  if (made && !data::parse_field_map(settings.text("data.fields")).empty())
    throw Error(ErrorCode::usage, fmt::format("data.fields does not apply to --data {}", source),
                "the fields of data that is made are those that the program takes");
  TrainingData opened;
  if (source == "random")
    opened = open_random(settings, needs);
  else if (source == "synth")
    opened = open_synth(settings, needs);
  else
    opened = open_stored(source, settings, needs);
  const data::Field* target = data::find_field(opened.train->fields(), needs.target);
  if (target && needs.outputs > 0 && target->classes > needs.outputs)
    throw Error(ErrorCode::usage,
                fmt::format("{} has {} classes, but the model only tells {} apart", source,
                            target->classes, needs.outputs),
                fmt::format("add --set model.classes={}", target->classes));
  return opened;
}

}  // namespace renkei::job
