#include "networks/join_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "program/builder.h"

namespace renkei::networks {
namespace {

using program::Builder;
using program::DType;
using program::Program;
using program::Size;
using program::Value;
using program::ValueId;

int64_t elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

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

std::vector<InputShape> input_shapes(const Program& program, size_t count) {
  if (count < 1 || count > program.inputs.size())
    throw Error(ErrorCode::usage,
                fmt::format("{} takes {} inputs, but {} are given", program.name,
                            program.inputs.size(), count),
                "give one shape per input in model.input_shape, with commas between");
  std::vector<InputShape> shapes;
  for (size_t i = 0; i < count; ++i) shapes.push_back({sample_shape(program, program.inputs[i])});
  return shapes;
}

std::vector<int64_t> joined_shape(const std::vector<InputShape>& inputs) {
  if (inputs.size() == 1) return inputs[0].shape;
  int64_t size = 0;
  for (const InputShape& input : inputs) size += elements(input.shape);
  return {size};
}

Program join_inputs(Program program, size_t count) {
  const std::vector<InputShape> shapes = input_shapes(program, count);
  if (program.inputs.size() > count + 1)
    throw Error(ErrorCode::usage,
                fmt::format("{} takes {} inputs, but {} are given", program.name,
                            program.inputs.size(), count),
                "give one shape per input in model.input_shape, with commas between; one more is "
                "the target, of a model that computes its loss");
  if (program.inputs.size() > count) program.inputs.back().name = "target";
  const std::vector<program::Port> parts(program.inputs.begin(),
                                         program.inputs.begin() + static_cast<int64_t>(count));
  if (count == 1 && program.value(parts[0].value).dtype == DType::f32) {
    program.inputs[0].name = "input";
    return program;
  }
  program.inputs.erase(program.inputs.begin(),
                       program.inputs.begin() + static_cast<int64_t>(count));
  const auto ops = static_cast<int64_t>(program.ops.size());
  Builder builder(std::move(program));
  std::vector<Size> sizes{builder.sizes(parts[0].value)[0]};
  for (const int64_t size : joined_shape(shapes)) sizes.emplace_back(size);
  const ValueId joined = builder.input("input", DType::f32, sizes);
  int64_t begin = 0;
  for (size_t i = 0; i < count; ++i) {
    const Value wanted = builder.value(parts[i].value);
    ValueId part = joined;
    if (count > 1) part = builder.narrow(part, 1, begin, elements(shapes[i].shape));
    if (count > 1 && wanted.sizes.size() != 2) part = builder.reshape(part, wanted.sizes);
    if (wanted.dtype != DType::f32) builder.to(part, wanted.dtype);
    builder.becomes(parts[i].value);
    begin += elements(shapes[i].shape);
  }
  program = builder.take();
  std::ranges::rotate(program.ops, program.ops.begin() + ops);
  std::ranges::rotate(program.inputs, program.inputs.end() - 1);
  check(program, program.name);
  return program;
}

}  // namespace renkei::networks
