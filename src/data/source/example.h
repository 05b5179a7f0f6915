// tf.train.Example, the protocol buffer in most TFRecord files: names, each with a list of bytes,
// of floats or of integers.
//
//   Example { Features features = 1 { repeated Entry { string key = 1; Feature value = 2 } = 1 } }
//   Feature { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3 }, each
//   with `repeated value = 1`, packed or not
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace renkei::data {

struct Feature {
  enum class Kind { bytes, floats, integers };
  std::string_view name;
  Kind kind = Kind::bytes;
  std::string_view list;  // the message
};

// All that can be told apart; of a payload that is something else, nothing.
std::vector<Feature> parse_example(std::string_view payload);
std::optional<Feature> find_feature(std::string_view payload, std::string_view name);
// Of the message Feature.
std::optional<Feature> parse_feature(std::string_view name, std::string_view message);

// The first of a list of bytes.
std::string_view first_bytes(const Feature& feature);
// Appends the numbers of a list, 4 bytes for each float and 8 for each integer, and returns how
// many there are.
int64_t append_numbers(const Feature& feature, std::string& numbers);

}  // namespace renkei::data
