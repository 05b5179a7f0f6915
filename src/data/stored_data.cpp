#include "data/stored_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace renkei::data {
namespace {

// Planes to pixels.
std::string interleave(std::string_view planes, size_t channels) {
  const size_t area = planes.size() / channels;
  std::string pixels(planes.size(), '\0');
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < area; ++i) pixels[i * channels + c] = planes[c * area + i];
  return pixels;
}

// As what an array is taken, if it can be an image.
std::optional<PixelLayout> pixels_of(const ArrayLayout& layout) {
  const auto& shape = layout.shape;
  const auto is_channels = [](int64_t side) { return side == 1 || side == 3; };
  if (layout.type != kByteElement || (shape.size() != 2 && shape.size() != 3)) return {};
  const bool flat = shape.size() == 2;
  const bool first = !flat && is_channels(shape[0]) && !is_channels(shape[2]);
  const int64_t channels = flat ? 1 : first ? shape[0] : shape[2];
  const size_t row = first ? 1 : 0;
  if (!is_channels(channels) || shape[row] < 1 || shape[row + 1] < 1 ||
      shape[row] > kMaxPixels / shape[row + 1])
    return {};
  return PixelLayout{.extent = {static_cast<int>(shape[row + 1]), static_cast<int>(shape[row])},
                     .channels = static_cast<int>(channels),
                     .channels_first = first};
}

std::vector<int64_t> longer_axes(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

bool is_image_shape(const std::vector<int64_t>& shape) {
  return shape.size() == 3 && shape[0] == 3;
}

}  // namespace

StoredData::StoredData(std::unique_ptr<const Source> source, const StoredDataOptions& options)
    : source_(std::move(source)), options_(options) {
  std::vector<std::string> names;
  for (const StoredField& stored : source_->fields()) names.push_back(stored.name);
  for (const MappedField& mapped : map_fields(options_.map, names))
    add_field(source_->fields()[mapped.field], mapped.name);
}

void StoredData::add_field(const StoredField& stored, const std::string& name) {
  Field field{.name = name, .origin = stored.origin};
  Recipe recipe{.stored = &stored};
  if (stored.is_label()) {
    field.dtype = DType::i64;
    field.classes = source_->classes();
  } else if (stored.layout) {
    add_numbers(stored, field, recipe);
  } else {
    field.shape = {3, options_.transform.height, options_.transform.width};
  }
  fields_.push_back(std::move(field));
  recipes_.push_back(std::move(recipe));
}

void StoredData::add_numbers(const StoredField& stored, Field& field, Recipe& recipe) const {
  const auto taken = std::ranges::find(options_.inputs, field.name, &TakenInput::name);
  const bool known = taken != options_.inputs.end();
  const bool image =
      known ? is_image_shape(taken->shape) : options_.inputs.empty() && field.name == kInput;
  if (image) recipe.pixels = pixels_of(*stored.layout);
  if (recipe.pixels) {
    field.shape = {3, options_.transform.height, options_.transform.width};
    return;
  }
  field.dtype = dtype_of(stored.layout->type);
  field.shape = stored.layout->shape;
  if (!known) return;
  const int64_t wanted = Field{.shape = taken->shape}.elements();
  if (field.elements() != wanted)
    throw Error(
        ErrorCode::data,
        fmt::format("a sample of {} has {} numbers in the {}, and the network takes {} as "
                    "'{}'",
                    source_->file_name(0), field.elements(), stored.origin, wanted, field.name),
        "choose another model, or other data");
  // Rows may be cut as one likes, but axes in another order would be scrambled.
  const auto axes = longer_axes(field.shape), wanted_axes = longer_axes(taken->shape);
  if (axes.size() == wanted_axes.size() && axes != wanted_axes)
    throw Error(ErrorCode::data,
                fmt::format("a sample of {} is {} in the {}, and the network takes {} as '{}'",
                            source_->file_name(0), fmt::join(field.shape, " × "), stored.origin,
                            fmt::join(taken->shape, " × "), field.name),
                "bring the axes into this order: channels before rows and columns");
  field.shape = taken->shape;
}

std::vector<int64_t> StoredData::records_of(std::span<const size_t> fields) const {
  std::vector<int64_t> records;
  for (const size_t field : fields)
    if (const StoredField& stored = *recipes_[field].stored; !stored.is_label())
      records.push_back(stored.record);
  std::ranges::sort(records);
  records.erase(std::ranges::unique(records).begin(), records.end());
  return records;
}

void StoredData::read_fields(int64_t sample, int64_t epoch, std::span<const FieldSpan> into) const {
  std::vector<size_t> fields;
  for (const FieldSpan& span : into) fields.push_back(span.field);
  std::vector<std::string> bytes;
  std::vector<Record> records;
  for (const int64_t record : records_of(fields)) records.push_back({.number = record});
  for (const Record& record : records) bytes.push_back(source_->read(sample, record.number));
  for (size_t i = 0; i < records.size(); ++i) records[i].bytes = bytes[i];
  decode_fields(sample, epoch, records, into);
}

void StoredData::decode_fields(int64_t sample, int64_t epoch, std::span<const Record> records,
                               std::span<const FieldSpan> into) const {
  const Random random(options_.seed, RandomUse::augmentation, static_cast<uint32_t>(epoch),
                      static_cast<uint64_t>(sample));
  for (const FieldSpan& span : into) {
    const Recipe& recipe = recipes_[span.field];
    if (recipe.stored->is_label()) {
      as_numbers<int64_t>(span.bytes)[0] = source_->label(sample);
      continue;
    }
    const auto record = std::ranges::find(records, recipe.stored->record, &Record::number);
    if (record == records.end())
      throw Error(ErrorCode::bug, fmt::format("'{}' was to be decoded from another record",
                                              fields_[span.field].name));
    decode_field(recipe, sample, random, record->bytes, span.bytes);
  }
}

std::unique_ptr<TransformScratch> StoredData::SpareScratch::take() {
  const std::lock_guard lock(mutex_);
  if (pieces_.empty()) return std::make_unique<TransformScratch>();
  auto piece = std::move(pieces_.back());
  pieces_.pop_back();
  return piece;
}

void StoredData::SpareScratch::give_back(std::unique_ptr<TransformScratch> piece) {
  const std::lock_guard lock(mutex_);
  pieces_.push_back(std::move(piece));
}

void StoredData::decode_field(const Recipe& recipe, int64_t sample, const Random& random,
                              std::string_view record, std::span<std::byte> into) const {
  const auto& layout = recipe.stored->layout;
  std::string numbers;
  const std::string_view bytes = source_->content(sample, *recipe.stored, record, numbers);
  if (layout && !recipe.pixels) return convert_elements(layout->type, bytes, into);
  auto scratch = scratch_.take();
  if (!layout) {
    transform_image(bytes, source_->describe(sample), options_.transform, random, *scratch,
                    as_numbers<float>(into));
  } else {
    const PixelLayout& pixels = *recipe.pixels;
    const bool planes = pixels.channels_first && pixels.channels > 1;
    const std::string turned =
        planes ? interleave(bytes, static_cast<size_t>(pixels.channels)) : "";
    transform_pixels(planes ? turned : bytes, pixels.extent, pixels.channels, options_.transform,
                     random, *scratch, as_numbers<float>(into));
  }
  scratch_.give_back(std::move(scratch));
}

}  // namespace renkei::data
