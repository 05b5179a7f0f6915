// A .pt2 file with other values: its members are copied as they are, except for the memory of the
// weights, whose index stays. The programs in it do not change.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "capture/archive_writer.h"
#include "capture/pt2.h"
#include "capture/pt2_weights.h"
#include "capture/weights_file.h"

namespace renkei::capture {
namespace {

constexpr std::string_view kWeights = "data/weights/", kIndex = "_weights_config.json";

// The weights of all programs in the file; they share their memory.
Weights all_weights(const Archive& archive, const Place& place) {
  Weights all;
  for (const std::string& path : archive.list(kWeights))
    if (path.ends_with(kIndex)) {
      const std::string model =
          path.substr(kWeights.size(), path.size() - kWeights.size() - kIndex.size());
      for (auto& [name, weight] : read_weights(archive, model, place))
        if (weight.memory.starts_with(kWeights) || weight.memory.empty())
          all.emplace(name, std::move(weight));
    }
  return all;
}

// Puts the elements where the tensor has them in its memory.
void scatter(const Weight& weight, const std::string& values, std::string& memory) {
  const auto element = static_cast<size_t>(program::bytes_of(weight.tensor.dtype));
  for (size_t i = 0; i * element < values.size(); ++i) {
    int64_t at = weight.first;
    auto index = static_cast<int64_t>(i);
    for (size_t d = weight.strides.size(); d-- > 0;) {
      at += index % weight.tensor.sizes[d] * weight.strides[d];
      index /= weight.tensor.sizes[d];
    }
    std::memcpy(memory.data() + static_cast<size_t>(at) * element, values.data() + i * element,
                element);
  }
}

class Replacement {
 public:
  Replacement(const Archive& archive, const NamedTensors& values)
      : archive_(archive), weights_(all_weights(archive, Place{archive.name()})) {
    for (const auto& [name, weight] : weights_) {
      by_memory_[weight.memory].push_back(&name);
      values_[name] = &value_of(name, weight, values);
    }
  }

  void copy_to(ArchiveWriter& writer) const {
    for (const std::string& path : archive_.list("")) {
      const data::ZipMember& member = *archive_.find(path);
      const auto found = by_memory_.find(path);
      if (found == by_memory_.end())
        writer.add(path, member.size, [&](int64_t begin, std::span<char> into) {
          archive_.file()->read(member.offset + begin, into);
        });
      else
        add_memory(writer, path, member, found->second);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::data,
                fmt::format("the weights do not fit {}: {}", archive_.name(), what),
                "export the network that the weights belong to");
  }

  const StoredTensor& value_of(const std::string& name, const Weight& weight,
                               const NamedTensors& values) const {
    const auto found = values.find(name);
    if (found == values.end()) refuse(fmt::format("there is no value for {}", name));
    if (weight.memory.empty()) refuse(fmt::format("it has no memory for {}", name));
    const StoredTensor& value = found->second;
    if (value.sizes != weight.tensor.sizes || value.dtype != weight.tensor.dtype)
      refuse(fmt::format("{} is {} [{}], and {} [{}] in the network", name,
                         program::name_of(value.dtype), fmt::join(value.sizes, ", "),
                         program::name_of(weight.tensor.dtype),
                         fmt::join(weight.tensor.sizes, ", ")));
    require_values(name, value);
    return value;
  }

  void add_memory(ArchiveWriter& writer, const std::string& path, const data::ZipMember& member,
                  const std::vector<const std::string*>& names) const {
    const std::string& first = *names.front();
    const Weight& weight = weights_.at(first);
    if (weight.tensor.bytes() == member.size && weight.first == 0 &&
        is_row_major(weight.tensor.sizes, weight.strides))
      return writer.add(path, member.size, values_.at(first)->read);
    std::string memory = archive_.file()->read(member.offset, member.size);
    for (const std::string* name : names)
      scatter(weights_.at(*name), values_.at(*name)->read_all(), memory);
    writer.add(path, memory);
  }

  const Archive& archive_;
  Weights weights_;
  std::map<std::string, std::vector<const std::string*>> by_memory_;
  std::map<std::string, const StoredTensor*> values_;
};

}  // namespace

void write_pt2_with(const std::string& pt2, const NamedTensors& values, const std::string& path) {
  const Archive archive(data::open_storage(pt2)->open(pt2), "give a file of renkei model export");
  // The archive refers to the values while it is copied.
  const NamedTensors fitting = fit_weights(read_pt2(pt2).program, values, "the file of weights");
  const Replacement replacement(archive, fitting);
  ArchiveWriter writer(path, archive.root());
  replacement.copy_to(writer);
  writer.finish();
}

}  // namespace renkei::capture
