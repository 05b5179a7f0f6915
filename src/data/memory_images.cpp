#include "data/memory_images.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace renkei::data {
namespace {

double machine_memory_bytes() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

MemoryImages::MemoryImages(int64_t count, int height, int width,
                           std::vector<std::string> class_names, const Normalisation& normalisation)
    : height_(height),
      width_(width),
      class_names_(std::move(class_names)),
      fields_{{.name = std::string(kInput),
               .dtype = DType::f32,
               .shape = {3, height, width},
               .origin = "image in memory"},
              {.name = std::string(kTarget),
               .dtype = DType::i64,
               .classes = static_cast<int64_t>(class_names_.size()),
               .origin = "label in memory"}} {
  for (size_t channel = 0; channel < normalised_.size(); ++channel)
    for (size_t byte = 0; byte < 256; ++byte)
      normalised_[channel][byte] =
          (static_cast<float>(byte) / 255.0f - normalisation.mean[channel]) /
          normalisation.deviation[channel];
  if (height < 1 || width < 1)
    throw Error(ErrorCode::usage, fmt::format("images of {} x {} pixels", width, height),
                "choose at least 1 pixel for each side");
  const double bytes = static_cast<double>(count) * static_cast<double>(image_bytes());
  // Linux grants more than there is and kills the process later, without a word: ask before.
  if (bytes > machine_memory_bytes())
    throw Error(
        ErrorCode::memory,
        fmt::format("{} images of {} x {} pixels need {:.1f} GiB, more than the {:.1f} GiB of "
                    "memory of this machine",
                    format_count(count), width, height, bytes / 0x1p30,
                    machine_memory_bytes() / 0x1p30),
        "use fewer or smaller images");
  labels_.resize(static_cast<size_t>(count));
  pixels_.resize(static_cast<size_t>(count) * image_bytes());
}

void MemoryImages::name_fields(std::string image, std::string label) {
  fields_[0].name = std::move(image);
  fields_[1].name = std::move(label);
}

size_t MemoryImages::image_bytes() const {
  return static_cast<size_t>(height_) * static_cast<size_t>(width_) * 3;
}

void MemoryImages::set(int64_t sample, const Image& image, int label) {
  check_sample(sample);
  if (image.height != height_ || image.width != width_ || image.channels != 3 || label < 0 ||
      label >= static_cast<int>(class_names_.size()))
    throw Error(ErrorCode::bug, fmt::format("sample {} does not fit its data set", sample));
  const auto place = static_cast<size_t>(sample);
  labels_[place] = label;
  std::ranges::copy(image.pixels, &pixels_[place * image_bytes()]);
}

void MemoryImages::read_fields(int64_t sample, int64_t, std::span<const FieldSpan> into) const {
  for (const FieldSpan& span : into)
    if (span.field == 0)
      read_input(sample, as_numbers<float>(span.bytes));
    else
      as_numbers<int64_t>(span.bytes)[0] = labels_[static_cast<size_t>(sample)];
}

void MemoryImages::read_input(int64_t sample, std::span<float> input) const {
  const size_t area = image_bytes() / 3;
  const uint8_t* pixel = &pixels_[static_cast<size_t>(sample) * image_bytes()];
  for (size_t place = 0; place < area; ++place)
    for (size_t channel = 0; channel < 3; ++channel)
      input[channel * area + place] = normalised_[channel][*pixel++];
}

}  // namespace renkei::data
