#include "networks/input_shapes.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "base/error.h"

namespace renkei::networks {
namespace {

using program::Program;
using program::Size;
using program::Value;

std::vector<std::string> cut(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (text.ends_with(separator)) parts.emplace_back();  // getline leaves an empty end out
  return parts;
}

int64_t positive_number(const std::string& word, const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 1)
    throw Error(ErrorCode::usage, fmt::format("'{}' is not an input shape: '{}'", text, word),
                "write 3x224x224, or 128<30522 for 128 token ids below 30522; commas between "
                "several inputs");
  return number;
}

// Sizes are those of a file; what they come to must still be a number of elements.
constexpr int64_t kMostElements = int64_t{1} << 40;

std::vector<int64_t> sample_shape(const Program& program, const program::Port& port) {
  const Value& value = program.value(port.value);
  const std::string_view batch = program::batch_symbol(program);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::data, fmt::format("the input {} of {} {}", port.name, program.name, why),
                "export the model with one row per sample, and only the number of samples open");
  };
  if (value.sizes.empty()) refuse("is a single number");
  if (!value.sizes[0].is_number() && !value.sizes[0].mentions(batch))
    refuse("does not have the batch as its first dimension");
  std::vector<int64_t> shape;
  int64_t total = 1;
  for (size_t i = 1; i < value.sizes.size(); ++i) {
    const Size& size = value.sizes[i];
    if (!size.is_number()) refuse("has a size that is left open: " + size.str());
    if (size.number() < 1 || size.number() > kMostElements / total)
      refuse("has a size that can't be: " + size.str());
    total *= size.number();
    shape.push_back(size.number());
  }
  return shape;
}

}  // namespace

std::vector<InputShape> parse_input_shapes(const std::string& text) {
  std::vector<InputShape> inputs;
  for (const std::string& part : cut(text, ',')) {
    InputShape input;
    const size_t less = part.find('<');
    if (less != std::string::npos) input.below = positive_number(part.substr(less + 1), text);
    for (const std::string& side : cut(part.substr(0, less), 'x'))
      input.shape.push_back(positive_number(side, text));
    if (input.shape.empty()) positive_number("", text);
    inputs.push_back(std::move(input));
  }
  if (inputs.empty()) positive_number("", text);
  return inputs;
}

std::vector<InputShape> input_shapes(const Program& program) {
  std::vector<InputShape> shapes;
  for (const program::Port& port : program.inputs)
    shapes.push_back({.name = port.name, .shape = sample_shape(program, port)});
  return shapes;
}

}  // namespace renkei::networks
