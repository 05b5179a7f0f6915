// A sample is a set of named fields, each of one type and shape in the whole data set: an image and
// its label, the columns of a table, token ids and a mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace renkei::data {

enum class DType : uint8_t { u8, i8, i16, i32, i64, f16, f32, f64, boolean };
std::string_view name_of(DType dtype);  // "f32"
int64_t bytes_of(DType dtype);

struct Field {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape = {};  // of one sample; empty: one number
  int64_t classes = 0;              // of a label, which is one number below this; 0: not a label
  std::string origin = {};          // where it comes from, for people: "array x_train"

  int64_t elements() const;
  int64_t bytes() const { return elements() * bytes_of(dtype); }
  bool is_label() const { return classes > 0; }
};

// The two that a network with one input and one target is trained with.
inline constexpr std::string_view kInput = "input", kTarget = "target";

// Null where there is none.
const Field* find_field(std::span<const Field> fields, std::string_view name);
// A usage Error where there is none, which names those that are there.
size_t field_index(std::span<const Field> fields, std::string_view name);

// Where a field of one sample is to be written: as many bytes as it has.
struct FieldSpan {
  size_t field = 0;
  std::span<std::byte> bytes;
};

}  // namespace renkei::data
