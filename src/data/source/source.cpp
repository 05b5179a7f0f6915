#include "data/source/source.h"

#include <algorithm>

namespace renkei::data {

int64_t Source::bytes(int64_t sample) const {
  int64_t sum = 0;
  for (int64_t record = 0; record < records(); ++record) sum += locate(sample, record).length;
  return sum;
}

std::string_view Source::unwrap(int64_t, int64_t, std::string_view stored) const {
  return stored;
}

std::string Source::read(int64_t sample, int64_t record) const {
  const Location where = locate(sample, record);
  std::string stored = file(where.file)->read(where.offset, where.length);
  const std::string_view unwrapped = unwrap(sample, record, stored);
  return unwrapped.size() == stored.size() ? stored : std::string(unwrapped);
}

std::string_view Source::content(int64_t, const StoredField&, std::string_view record,
                                 std::string&) const {
  return record;
}

std::string Source::describe(int64_t sample) const {
  if (records() == 0) return fmt::format("sample {}", sample);
  const Location where = locate(sample, 0);
  return fmt::format("sample {} ({}, offset {})", sample, file_name(where.file), where.offset);
}

int64_t Source::classes() const {
  const auto named = static_cast<int64_t>(class_names().size());
  int64_t highest = kNoLabel;
  if (named == 0)
    for (int64_t sample = 0; sample < count(); ++sample) highest = std::max(highest, label(sample));
  return std::max(named, highest + 1);
}

void Source::check_sample(int64_t sample) const {
  if (sample < 0 || sample >= count())
    throw Error(ErrorCode::bug, fmt::format("sample {} is not in a source of {}", sample, count()));
}

const StoredField* find_field(const Source& source, std::string_view name) {
  const auto found = std::ranges::find(source.fields(), name, &StoredField::name);
  return found == source.fields().end() ? nullptr : &*found;
}

std::vector<StoredField> image_fields(std::string image_origin, std::string label_origin) {
  std::vector<StoredField> fields{{.name = std::string(kInput), .origin = std::move(image_origin)}};
  if (!label_origin.empty())
    fields.push_back(
        {.name = std::string(kTarget), .origin = std::move(label_origin), .record = kNoRecord});
  return fields;
}

}  // namespace renkei::data
