#include "capture/pt2_arguments.h"

#include <fmt/format.h>

#include <array>
#include <functional>

namespace renkei::capture {
namespace {

using program::Argument;
using program::DType;
using program::List;
using program::Word;

// In the order of torch/_export/serde/schema.py.
constexpr std::array<std::string_view, 36> kScalarTypes{"",
                                                        "uint8",
                                                        "int8",
                                                        "int16",
                                                        "int32",
                                                        "int64",
                                                        "float16",
                                                        "float32",
                                                        "float64",
                                                        "complex32",
                                                        "complex64",
                                                        "complex128",
                                                        "bool",
                                                        "bfloat16",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "uint16",
                                                        "float8_e4m3fn",
                                                        "float8_e5m2",
                                                        "float8_e4m3fnuz",
                                                        "float8_e5m2fnuz",
                                                        "float8_e8m0fnu",
                                                        "uint32",
                                                        "uint64"};
constexpr std::array<std::string_view, 8> kLayouts{
    "", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "strided"};
constexpr std::array<std::string_view, 5> kMemoryFormats{"", "contiguous_format", "channels_last",
                                                         "channels_last_3d", "preserve_format"};

std::optional<DType> dtype_from_number(int64_t number) {
  switch (number) {
    case 1:
      return DType::u8;
    case 2:
      return DType::i8;
    case 3:
      return DType::i16;
    case 4:
      return DType::i32;
    case 5:
      return DType::i64;
    case 6:
      return DType::f16;
    case 7:
      return DType::f32;
    case 8:
      return DType::f64;
    case 10:
      return DType::c64;
    case 11:
      return DType::c128;
    case 12:
      return DType::boolean;
    case 13:
      return DType::bf16;
    default:
      return {};
  }
}

template <size_t N>
std::string word(const std::array<std::string_view, N>& words, const json& value,
                 std::string_view what, const Place& place) {
  const int64_t number = integer_of(value, what, place);
  if (number < 0 || number >= static_cast<int64_t>(N) || words[static_cast<size_t>(number)].empty())
    place.refuse(fmt::format("'{}' is {}, which stands for nothing that is known", what, number));
  return std::string(words[static_cast<size_t>(number)]);
}

// One read of an argument: the scope and the place stay the same.
class Reader {
 public:
  Reader(std::string_view what, const Scope& scope, const Place& place)
      : what_(what), scope_(scope), place_(place) {}

  Argument read(const json& argument) const {
    const auto [tag, value] = tagged(argument, what_, place_);
    if (tag == "as_none") return program::None{};
    if (tag == "as_tensor") return tensor(value);
    if (tag == "as_int") return integer_of(value, what_, place_);
    if (tag == "as_float") return real_of(value, what_, place_);
    if (tag == "as_bool") return boolean_of(value, what_, place_);
    if (tag == "as_string") return text_of(value, what_, place_);
    if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool")
      return symbolic(value);
    if (tag == "as_optional_tensor") return optional_tensor(value);
    if (tag == "as_scalar_type") return dtype_of(value, what_, place_);
    if (tag == "as_memory_format") return Word{word(kMemoryFormats, value, what_, place_)};
    if (tag == "as_layout") return Word{word(kLayouts, value, what_, place_)};
    if (tag == "as_device") return device(value);
    return list_or_refuse(tag, value);
  }

 private:
  Argument list_or_refuse(std::string_view tag, const json& value) const {
    if (tag == "as_tensors") return list(value, [&](const json& v) { return tensor(v); });
    if (tag == "as_ints") return list(value, [&](const json& v) { return integer(v); });
    if (tag == "as_floats") return list(value, [&](const json& v) { return real(v); });
    if (tag == "as_bools")
      return list(value, [&](const json& v) { return Argument(boolean_of(v, what_, place_)); });
    if (tag == "as_strings")
      return list(value, [&](const json& v) { return Argument(text_of(v, what_, place_)); });
    if (tag == "as_sym_ints" || tag == "as_sym_floats" || tag == "as_sym_bools")
      return list(value, [&](const json& v) { return symbolic(v); });
    if (tag == "as_optional_tensors")
      return list(value, [&](const json& v) { return optional_tensor(v); });
    if (tag == "as_nested_tensors") return lists(value, [&](const json& v) { return tensor(v); });
    if (tag == "as_int_lists") return lists(value, [&](const json& v) { return integer(v); });
    if (tag == "as_float_lists") return lists(value, [&](const json& v) { return real(v); });
    if (tag == "as_custom_obj")
      place_.refuse(fmt::format("'{}' is an object of a class of its own, which is code", what_),
                    "Renkei runs models whose operators take tensors and numbers");
    place_.refuse(fmt::format("'{}' is of the kind '{}', which can't be run", what_, tag),
                  "write this part of the model with operators that take tensors and numbers");
  }

  using ReadOne = std::function<Argument(const json&)>;

  Argument list(const json& value, const ReadOne& read_one) const {
    List list;
    for (const json& item : list_of(value, what_, place_)) list.push_back(read_one(item));
    return list;
  }

  Argument lists(const json& value, const ReadOne& read_one) const {
    return list(value, [&](const json& inner) { return list(inner, read_one); });
  }

  Argument integer(const json& value) const { return integer_of(value, what_, place_); }
  Argument real(const json& value) const { return real_of(value, what_, place_); }

  Argument tensor(const json& value) const {
    return scope_.find(text_of(field(value, "name", place_), what_, place_), place_);
  }

  Argument optional_tensor(const json& argument) const {
    const auto [tag, value] = tagged(argument, what_, place_);
    if (tag == "as_none") return program::None{};
    return tensor(value);
  }

  Argument symbolic(const json& argument) const {
    const auto [tag, value] = tagged(argument, what_, place_);
    if (tag == "as_name") return scope_.find(text_of(value, what_, place_), place_);
    if (tag == "as_int") return integer(value);
    if (tag == "as_float") return real(value);
    return boolean_of(value, what_, place_);
  }

  Argument device(const json& value) const {
    const std::string type = text_of(field(value, "type", place_), what_, place_);
    const json* index = find_field(value, "index");
    if (!index) return Word{type};
    return Word{fmt::format("{}:{}", type, integer_of(*index, what_, place_))};
  }

  std::string_view what_;
  const Scope& scope_;
  const Place& place_;
};

}  // namespace

void Scope::bind(const std::string& name, Argument argument, const Place& place) {
  // Lists and texts would be copied at each use.
  if (std::holds_alternative<List>(argument) || std::holds_alternative<std::string>(argument))
    place.refuse(fmt::format("'{}' is given a list or a text", name));
  if (!bound_.emplace(name, std::move(argument)).second)
    place.refuse(fmt::format("'{}' is made twice", name));
}

const Argument& Scope::find(const std::string& name, const Place& place) const {
  const auto found = bound_.find(name);
  if (found == bound_.end()) place.refuse(fmt::format("'{}' is used before it is made", name));
  return found->second;
}

DType dtype_of(const json& scalar_type, std::string_view what, const Place& place) {
  const std::string name = word(kScalarTypes, scalar_type, what, place);
  const std::optional<DType> dtype = dtype_from_number(scalar_type.get<int64_t>());
  if (!dtype)
    place.refuse(
        fmt::format("'{}' is of the type {}, which Renkei does not compute with", what, name),
        "use float32, float64, bfloat16, float16, complex numbers, or integers of up to 64 bits");
  return *dtype;
}

void check_strided(const json& layout, std::string_view what, const Place& place) {
  const std::string name = word(kLayouts, layout, what, place);
  if (name != "strided")
    place.refuse(fmt::format("'{}' has the layout {}", what, name),
                 "Renkei knows dense tensors only: convert it with .to_dense()");
}

Argument read_argument(const json& argument, std::string_view what, const Scope& scope,
                       const Place& place) {
  return Reader(what, scope, place).read(argument);
}

}  // namespace renkei::capture
