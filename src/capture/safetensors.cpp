#include "capture/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "capture/json_reading.h"
#include "data/storage/storage.h"

namespace renkei::capture {
namespace {

using program::DType;

static_assert(std::endian::native == std::endian::little);

constexpr int64_t kLargestHeader = 100'000'000;  // as the format has it
constexpr size_t kPiece = 8 << 20;
constexpr std::string_view kNotes = "__metadata__";
constexpr std::string_view kHint = "the file is damaged or incomplete; copy it again";

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array<TypeName, 11> kTypes{{{"F32", DType::f32},
                                           {"F64", DType::f64},
                                           {"F16", DType::f16},
                                           {"BF16", DType::bf16},
                                           {"I64", DType::i64},
                                           {"I32", DType::i32},
                                           {"I16", DType::i16},
                                           {"I8", DType::i8},
                                           {"U8", DType::u8},
                                           {"BOOL", DType::boolean},
                                           {"C64", DType::c64}}};

struct Header {
  json content;
  int64_t data = 0;  // offset of the first tensor
};

Header read_header(const data::ByteFile& file, const Place& place) {
  if (file.size() < 8) place.refuse("it is too short to be a safetensors file", kHint);
  uint64_t length = 0;
  std::memcpy(&length, file.read(0, 8).data(), sizeof(length));
  if (length > uint64_t{kLargestHeader} || static_cast<int64_t>(length) > file.size() - 8)
    place.refuse(fmt::format("its header claims {} bytes: it is not a safetensors file", length),
                 kHint);
  const std::string text = file.read(8, static_cast<int64_t>(length));
  if (!text.starts_with('{')) place.refuse("it is not a safetensors file", kHint);
  Header header{.content = parse_model_json(text, place), .data = 8 + static_cast<int64_t>(length)};
  object_of(header.content, "header", place);
  return header;
}

struct Range {
  int64_t begin = 0, end = 0;
  std::string name;
};

DType type_of(const json& entry, const Place& place) {
  const std::string name = text_of(field(entry, "dtype", place), "dtype", place);
  for (const TypeName& type : kTypes)
    if (type.name == name) return type.dtype;
  place.refuse(fmt::format("it is of the type {}, which Renkei does not compute with", name),
               "convert it to F32, or to another type of up to 64 bits");
}

Range range_of(const json& entry, const Place& place) {
  const json& offsets = list_of(field(entry, "data_offsets", place), "data_offsets", place);
  if (offsets.size() != 2) place.refuse("'data_offsets' is not a pair", kHint);
  return {integer_of(offsets[0], "data_offsets", place),
          integer_of(offsets[1], "data_offsets", place)};
}

// The format allows neither gaps nor overlaps: nothing is hidden in a file.
void check_no_gaps(std::vector<Range> ranges, int64_t bytes, const Place& place) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t at = 0;
  for (const Range& range : ranges) {
    if (range.begin != at)
      place.refuse(
          fmt::format("the tensor '{}' begins at {} and not at {}, where the one before ends",
                      range.name, range.begin, at),
          kHint);
    at = range.end;
  }
  if (at != bytes)
    place.refuse(fmt::format("its tensors have {} bytes, and it has {}", at, bytes), kHint);
}

std::string_view type_name(const std::string& tensor, DType dtype) {
  for (const TypeName& type : kTypes)
    if (type.dtype == dtype) return type.name;
  throw Error(ErrorCode::data,
              fmt::format("the tensor '{}' is of the type {}, which safetensors files can't hold",
                          tensor, program::name_of(dtype)),
              "leave it out, or convert it");
}

using Entry = NamedTensors::value_type;

std::vector<const Entry*> in_order(const NamedTensors& tensors) {
  std::vector<const Entry*> order;
  for (const Entry& entry : tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return program::bytes_of(a->second.dtype) > program::bytes_of(b->second.dtype);
  });
  return order;
}

std::string make_header(const std::vector<const Entry*>& order,
                        const std::map<std::string, std::string>& notes) {
  json header = json::object();
  if (!notes.empty()) header[kNotes] = notes;
  int64_t at = 0;
  for (const Entry* entry : order) {
    const auto& [name, tensor] = *entry;
    header[name] = {{"dtype", type_name(name, tensor.dtype)},
                    {"shape", tensor.sizes},
                    {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text;
}

}  // namespace

NamedTensors read_safetensors(const std::shared_ptr<const data::ByteFile>& file) {
  const Place place{file->name()};
  const Header header = read_header(*file, place);
  NamedTensors tensors;
  std::vector<Range> ranges;
  for (const auto& [name, entry] : header.content.items()) {
    if (name == kNotes) continue;
    const Place tensor_place = place.at(fmt::format("the tensor '{}'", name));
    const DType dtype = type_of(entry, tensor_place);
    std::vector<int64_t> sizes;
    for (const json& size : list_of(field(entry, "shape", tensor_place), "shape", tensor_place))
      sizes.push_back(integer_of(size, "shape", tensor_place));
    Range range = range_of(entry, tensor_place);
    const std::optional<int64_t> count = count_elements(sizes, dtype);
    if (range.begin < 0 || range.end < range.begin || range.end > file->size() - header.data ||
        !count || range.end - range.begin != *count * program::bytes_of(dtype))
      tensor_place.refuse("its sizes, its type and its place in the file do not fit together",
                          kHint);
    std::vector<int64_t> strides = row_major_strides(sizes);
    tensors.emplace(name, stored_tensor(dtype, std::move(sizes),
                                        {.file = file,
                                         .begin = header.data + range.begin,
                                         .size = range.end - range.begin,
                                         .strides = std::move(strides)},
                                        tensor_place.text));
    range.name = name;
    ranges.push_back(std::move(range));
  }
  check_no_gaps(std::move(ranges), file->size() - header.data, place);
  return tensors;
}

NamedTensors read_safetensors(const std::string& path) {
  return read_safetensors(data::open_storage(path)->open(path));
}

std::vector<std::string> order_in_safetensors(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const Entry* entry : in_order(tensors)) names.push_back(entry->first);
  return names;
}

std::string safetensors_header(const NamedTensors& tensors,
                               const std::map<std::string, std::string>& notes) {
  return make_header(in_order(tensors), notes);
}

void write_safetensors(const std::string& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& notes) {
  const std::vector<const Entry*> order = in_order(tensors);
  const std::unique_ptr<data::ByteWriter> writer = data::open_storage(path)->create(path);
  writer->append(make_header(order, notes));
  std::string piece;
  for (const Entry* entry : order) {
    const StoredTensor& tensor = entry->second;
    const int64_t bytes = tensor.bytes();
    require_values(entry->first, tensor);
    for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(piece.size())) {
      piece.resize(std::min(kPiece, static_cast<size_t>(bytes - at)));
      tensor.read(at, piece);
      writer->append(piece);
    }
  }
  writer->finish();
}

}  // namespace renkei::capture
