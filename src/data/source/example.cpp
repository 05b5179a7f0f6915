#include "data/source/example.h"

#include "data/source/proto_walk.h"

namespace renkei::data {
namespace {

// Calls `use` with each feature until it says that it has seen enough.
template <typename Use>
void walk_features(std::string_view payload, Use use) {
  for (ProtoWalk example(payload); example.next();) {
    if (example.field != 1) continue;
    for (ProtoWalk features(example.piece); features.next();) {
      std::string_view name, message;
      for (ProtoWalk entry(features.piece); entry.next();)
        (entry.field == 1 ? name : message) = entry.piece;
      if (const auto feature = parse_feature(name, message); feature && use(*feature)) return;
    }
  }
}

void append_integer(uint64_t value, std::string& numbers) {
  numbers.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::optional<Feature> parse_feature(std::string_view name, std::string_view message) {
  ProtoWalk list(message);
  if (!list.next() || list.field < 1 || list.field > 3) return {};
  return Feature{name, static_cast<Feature::Kind>(list.field - 1), list.piece};
}

std::vector<Feature> parse_example(std::string_view payload) {
  std::vector<Feature> features;
  walk_features(payload, [&](const Feature& feature) {
    features.push_back(feature);
    return false;
  });
  return features;
}

std::optional<Feature> find_feature(std::string_view payload, std::string_view name) {
  std::optional<Feature> found;
  walk_features(payload, [&](const Feature& feature) {
    if (feature.name == name) found = feature;
    return found.has_value();
  });
  return found;
}

std::string_view first_bytes(const Feature& feature) {
  for (ProtoWalk values(feature.list); values.next();)
    if (values.field == 1) return values.piece;
  return {};
}

int64_t append_numbers(const Feature& feature, std::string& numbers) {
  const size_t before = numbers.size();
  for (ProtoWalk values(feature.list); values.next();) {
    if (values.field != 1) continue;
    if (feature.kind == Feature::Kind::floats) {
      numbers.append(values.piece.substr(0, values.piece.size() / sizeof(float) * sizeof(float)));
    } else if (values.piece.empty()) {
      append_integer(values.number, numbers);
    } else {
      uint64_t value = 0;
      for (ProtoWalk packed(values.piece); !packed.empty() && packed.varint(value);)
        append_integer(value, numbers);
    }
  }
  const size_t width = feature.kind == Feature::Kind::floats ? sizeof(float) : sizeof(int64_t);
  return static_cast<int64_t>((numbers.size() - before) / width);
}

}  // namespace renkei::data
