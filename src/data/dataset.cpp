#include "data/dataset.h"

#include "base/error.h"

namespace renkei::data {

void Dataset::read(int64_t sample, int64_t epoch, std::span<const FieldSpan> into) const {
  check(sample, into);
  read_fields(sample, epoch, into);
}

void Dataset::decode(int64_t sample, int64_t epoch, std::span<const Record> records,
                     std::span<const FieldSpan> into) const {
  check(sample, into);
  decode_fields(sample, epoch, records, into);
}

std::vector<int64_t> Dataset::records_of(std::span<const size_t>) const {
  return {};
}

void Dataset::decode_fields(int64_t, int64_t, std::span<const Record>,
                            std::span<const FieldSpan>) const {
  throw Error(ErrorCode::bug, "a data set in memory was asked to decode");
}

void Dataset::check_sample(int64_t sample) const {
  if (sample < 0 || sample >= count())
    throw Error(ErrorCode::bug,
                fmt::format("sample {} is not in a data set of {}", sample, count()));
}

void Dataset::check(int64_t sample, std::span<const FieldSpan> into) const {
  check_sample(sample);
  for (const FieldSpan& span : into) {
    if (span.field >= fields().size())
      throw Error(ErrorCode::bug,
                  fmt::format("field {} of a data set that has {}", span.field, fields().size()));
    const Field& field = fields()[span.field];
    if (static_cast<int64_t>(span.bytes.size()) != field.bytes())
      throw Error(ErrorCode::bug,
                  fmt::format("the field '{}' of {} bytes was read into a span of {}", field.name,
                              field.bytes(), span.bytes.size()));
  }
}

}  // namespace renkei::data
