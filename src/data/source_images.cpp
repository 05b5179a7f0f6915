#include "data/source_images.h"

namespace renkei::data {
namespace {

// One per thread, so that images are decoded into memory that is already there.
TransformScratch& scratch_of_thread() {
  static thread_local TransformScratch scratch;
  return scratch;
}

// Planes to pixels.
std::string interleave(std::string_view planes, size_t channels) {
  const size_t area = planes.size() / channels;
  std::string pixels(planes.size(), '\0');
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < area; ++i) pixels[i * channels + c] = planes[c * area + i];
  return pixels;
}

}  // namespace

SourceImages::SourceImages(std::unique_ptr<const Source> source, const SourceImagesOptions& options)
    : source_(std::move(source)), options_(options), classes_(source_->classes()) {
  const auto without = [&](int64_t sample) { return source_->label(sample) == kNoLabel; };
  if (classes_ == 0 || without(0) || without(count() - 1))
    throw Error(ErrorCode::data,
                fmt::format("the samples of {} have no labels", source_->file_name(0)),
                "docs/data.md says where labels are looked for");
  if (const auto layout = source_->layout()) check_layout(*layout);
}

void SourceImages::check_layout(const ArrayLayout& layout) {
  const auto& shape = layout.shape;
  const auto is_channels = [](int64_t side) { return side == 1 || side == 3; };
  if (layout.type == kByteElement && (shape.size() == 2 || shape.size() == 3)) {
    const bool flat = shape.size() == 2;
    channels_first_ = !flat && is_channels(shape[0]) && !is_channels(shape[2]);
    const size_t row = channels_first_ ? 1 : 0;
    channels_ = flat ? 1 : static_cast<int>(channels_first_ ? shape[0] : shape[2]);
    if (is_channels(channels_) && shape[row] > 0 && shape[row + 1] > 0 &&
        shape[row] <= kMaxPixels / shape[row + 1]) {
      pixels_ = {static_cast<int>(shape[row + 1]), static_cast<int>(shape[row])};
      return;
    }
  }
  channels_ = 0;
  if (layout.elements() != sample_size())
    throw Error(ErrorCode::data,
                fmt::format("a sample of {} has {} numbers, and the network takes {}",
                            source_->file_name(0), layout.elements(), sample_size()),
                "choose another model, or other data");
}

std::vector<int64_t> SourceImages::sample_shape() const {
  return {3, options_.transform.height, options_.transform.width};
}

void SourceImages::read_input(int64_t sample, std::span<float> input) const {
  read_augmented(sample, 0, input);
}

void SourceImages::read_augmented(int64_t sample, int64_t epoch, std::span<float> input) const {
  check_input(sample, input);
  decode(sample, epoch, source_->read(sample).bytes, input);
}

void SourceImages::decode(int64_t sample, int64_t epoch, std::string_view bytes,
                          std::span<float> input) const {
  const Random random(options_.seed, RandomUse::augmentation, static_cast<uint32_t>(epoch),
                      static_cast<uint64_t>(sample));
  const auto layout = source_->layout();
  if (!layout) {
    transform_image(bytes, source_->describe(sample), options_.transform, random,
                    scratch_of_thread(), input);
  } else if (channels_ == 0) {
    convert_to_floats(layout->type, bytes, input);
  } else {
    const bool planes = channels_first_ && channels_ > 1;
    const std::string pixels = planes ? interleave(bytes, static_cast<size_t>(channels_)) : "";
    transform_pixels(planes ? pixels : bytes, pixels_, channels_, options_.transform, random,
                     scratch_of_thread(), input);
  }
}

}  // namespace renkei::data
