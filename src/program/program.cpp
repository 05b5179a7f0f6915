#include "program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace renkei::program {
namespace {

struct DTypeFacts {
  std::string_view name;
  int64_t bytes;
  bool floating;
};

constexpr std::array<DTypeFacts, 12> kDTypes{{{"f32", 4, true},
                                              {"f64", 8, true},
                                              {"f16", 2, true},
                                              {"bf16", 2, true},
                                              {"i64", 8, false},
                                              {"i32", 4, false},
                                              {"i16", 2, false},
                                              {"i8", 1, false},
                                              {"u8", 1, false},
                                              {"bool", 1, false},
                                              {"c64", 8, true},
                                              {"c128", 16, true}}};

const DTypeFacts& facts(DType dtype) {
  return kDTypes.at(static_cast<size_t>(dtype));
}

void collect(const Argument& argument, std::vector<ValueId>& found) {
  if (const auto* reference = std::get_if<Reference>(&argument)) found.push_back(reference->value);
  if (const auto* list = std::get_if<List>(&argument))
    for (const Argument& item : *list) collect(item, found);
}

}  // namespace

std::string_view name_of(DType dtype) {
  return facts(dtype).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return {};
}

int64_t bytes_of(DType dtype) {
  return facts(dtype).bytes;
}

bool is_floating(DType dtype) {
  return facts(dtype).floating;
}

const Argument* find_argument(const Op& op, std::string_view name) {
  for (const NamedArgument& argument : op.arguments)
    if (argument.name == name) return &argument.value;
  return nullptr;
}

void set_argument(Op& op, std::string_view name, Argument value) {
  for (NamedArgument& argument : op.arguments)
    if (argument.name == name) {
      argument.value = std::move(value);
      return;
    }
  op.arguments.push_back({std::string(name), std::move(value)});
}

std::vector<ValueId> references(const Op& op) {
  std::vector<ValueId> found;
  for (const NamedArgument& argument : op.arguments) collect(argument.value, found);
  return found;
}

std::string_view batch_symbol(const Program& program) {
  for (const Symbol& symbol : program.symbols)
    if (symbol.batch) return symbol.name;
  return {};
}

SymbolValues with_batch(const Program& program, int64_t samples) {
  SymbolValues values;
  for (const Symbol& symbol : program.symbols)
    values[symbol.name] = symbol.batch ? samples : symbol.low;
  return values;
}

std::vector<int64_t> sizes_of(const Value& value, const SymbolValues& symbols) {
  std::vector<int64_t> sizes;
  sizes.reserve(value.sizes.size());
  for (const Size& size : value.sizes) {
    sizes.push_back(size.value(symbols));
    if (sizes.back() < 0)
      throw Error(ErrorCode::data, fmt::format("a side of the value {} is {} long: {}", value.name,
                                               sizes.back(), size.str()));
  }
  return sizes;
}

int64_t bytes_of(const Value& value, const SymbolValues& symbols) {
  if (value.kind != ValueKind::tensor) return 8;
  int64_t bytes = bytes_of(value.dtype);
  for (const int64_t side : sizes_of(value, symbols))
    if (__builtin_mul_overflow(bytes, side, &bytes))
      throw Error(ErrorCode::data,
                  fmt::format("the value {} has more bytes than 64 bits can count", value.name));
  return bytes;
}

}  // namespace renkei::program
