#include "data/source/source.h"

#include <algorithm>

namespace renkei::data {

std::string_view Source::unwrap(int64_t, std::string_view stored) const {
  return stored;
}

Sample Source::read(int64_t sample) const {
  const Location where = locate(sample);
  Sample result{.bytes = file(where.file)->read(where.offset, where.length),
                .label = label(sample)};
  const std::string_view content = unwrap(sample, result.bytes);
  if (content.size() != result.bytes.size()) result.bytes = std::string(content);
  return result;
}

std::string Source::describe(int64_t sample) const {
  const Location where = locate(sample);
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

}  // namespace renkei::data
