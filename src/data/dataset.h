// What is trained on: samples of named fields. The caller owns the memory: it passes spans into its
// batch, so a field is written once, where it is used. It says which fields it wants, because in a
// pipeline the first stage needs the images and the last one the labels, and only what is wanted is
// read and decoded.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/field.h"

namespace renkei::data {

class Source;

// One of the pieces that a sample is stored in.
struct Record {
  int64_t number = 0;
  std::string_view bytes;
};

// All functions may be called from many threads at once. A sample or field that does not exist, or
// a span of the wrong size, is a mistake of the calling code, a bug Error.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t count() const = 0;
  virtual const std::vector<Field>& fields() const = 0;

  // Several fields of a sample, with the changes (crops, mirroring) that this epoch makes to it.
  void read(int64_t sample, int64_t epoch, std::span<const FieldSpan> into) const;

  // For loaders that read ahead, the two halves of read(): `source` brings the records that some
  // fields are in, `decode` makes the fields of them. Null for data sets in memory.
  virtual const Source* source() const { return nullptr; }
  virtual std::vector<int64_t> records_of(std::span<const size_t> fields) const;
  void decode(int64_t sample, int64_t epoch, std::span<const Record> records,
              std::span<const FieldSpan> into) const;

 protected:
  void check_sample(int64_t sample) const;

 private:
  void check(int64_t sample, std::span<const FieldSpan> into) const;

  // As above, checked.
  virtual void read_fields(int64_t sample, int64_t epoch,
                           std::span<const FieldSpan> into) const = 0;
  virtual void decode_fields(int64_t sample, int64_t epoch, std::span<const Record> records,
                             std::span<const FieldSpan> into) const;
};

// The memory of a field as numbers, whose type must be that of the field.
template <typename T>
std::span<T> as_numbers(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace renkei::data
