#include "capture/pt2_weights.h"

#include <fmt/format.h>

#include "capture/pt2_arguments.h"

namespace renkei::capture {
namespace {

constexpr int64_t kLargestIndex = 256 << 20;

std::vector<int64_t> plain_sizes(const json& meta, std::string_view name, const Place& place) {
  std::vector<int64_t> sizes;
  for (const json& size : list_of(field(meta, name, place), name, place))
    sizes.push_back(integer_of(field(size, "as_int", place), name, place));
  return sizes;
}

void refuse_pickle(const json& entry, const Place& place) {
  const bool pickled = boolean_of(field(entry, "use_pickle", place), "use_pickle", place);
  if (pickled || !find_field(entry, "tensor_meta"))
    place.refuse("it is stored as a Python object (pickle), which is code",
                 "keep only plain tensors in the model, and export it again");
}

// The last element that the tensor reaches in its memory, and one more.
int64_t end_of(const Weight& weight) {
  int64_t last = weight.first;
  for (size_t i = 0; i < weight.strides.size(); ++i) {
    if (weight.tensor.sizes[i] == 0) return weight.first;
    last += (weight.tensor.sizes[i] - 1) * weight.strides[i];
  }
  return last + 1;
}

Weight read_weight(const Archive& archive, const std::string& folder, const json& entry,
                   const Place& place) {
  refuse_pickle(entry, place);
  const json& meta = field(entry, "tensor_meta", place);
  check_strided(field(meta, "layout", place), "layout", place);
  Weight weight{.tensor = {.dtype = dtype_of(field(meta, "dtype", place), "dtype", place),
                           .sizes = plain_sizes(meta, "sizes", place)},
                .first = integer_of(field(field(meta, "storage_offset", place), "as_int", place),
                                    "offset", place),
                .strides = plain_sizes(meta, "strides", place)};
  const std::optional<int64_t> count = count_elements(weight.tensor.sizes, weight.tensor.dtype);
  if (!count) place.refuse("its sizes are impossible");
  const std::string path = folder + text_of(field(entry, "path_name", place), "path_name", place);
  const data::ZipMember* member = archive.find(path);
  if (!member || (member->size == 0 && *count > 0)) return weight;
  weight.tensor = stored_tensor(weight.tensor.dtype, weight.tensor.sizes,
                                {.file = archive.file(),
                                 .begin = member->offset,
                                 .size = member->size,
                                 .first = weight.first,
                                 .strides = weight.strides},
                                place.text);
  weight.memory = path;
  weight.end = end_of(weight);
  return weight;
}

void read_index(const Archive& archive, const std::string& folder, const std::string& index,
                const Place& file, Weights& weights) {
  if (!archive.has(folder + index)) return;
  const Place place = file.at(folder + index);
  const json content = parse_model_json(archive.read(folder + index, kLargestIndex), place);
  const json& entries = object_of(field(content, "config", place), "config", place);
  for (const auto& [name, entry] : entries.items())
    weights.emplace(
        name, read_weight(archive, folder, entry, file.at(fmt::format("the tensor '{}'", name))));
}

}  // namespace

bool Weight::is_same_as(const Weight& other) const {
  return !memory.empty() && memory == other.memory && first == other.first &&
         tensor.dtype == other.tensor.dtype && tensor.sizes == other.tensor.sizes &&
         strides == other.strides;
}

Weights read_weights(const Archive& archive, const std::string& model, const Place& place) {
  for (const std::string_view folder : {"data/weights/", "data/constants/"})
    if (archive.has(fmt::format("{}{}.pt", folder, model)))
      place.refuse("its weights are stored as Python objects (pickle), which are code",
                   "export the model again with PyTorch 2.9 or newer");
  Weights weights;
  read_index(archive, "data/weights/", model + "_weights_config.json", place, weights);
  read_index(archive, "data/constants/", model + "_constants_config.json", place, weights);
  return weights;
}

}  // namespace renkei::capture
