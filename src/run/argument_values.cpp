#include "run/argument_values.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <map>

#include "base/error.h"
#include "run/executor.h"

namespace renkei::run {

using program::Argument;
using program::List;
using program::None;
using program::Reference;

torch::ScalarType scalar_type(program::DType dtype) {
  using enum program::DType;
  switch (dtype) {
    case f32:
      return torch::kFloat32;
    case f64:
      return torch::kFloat64;
    case f16:
      return torch::kFloat16;
    case bf16:
      return torch::kBFloat16;
    case i64:
      return torch::kInt64;
    case i32:
      return torch::kInt32;
    case i16:
      return torch::kInt16;
    case i8:
      return torch::kInt8;
    case u8:
      return torch::kUInt8;
    case boolean:
      return torch::kBool;
    case c64:
      return torch::kComplexFloat;
    case c128:
      return torch::kComplexDouble;
  }
  throw Error(ErrorCode::bug, "a dtype has no counterpart in Torch");
}

namespace {

int64_t word_value(const std::string& word, const std::string& place) {
  static const std::map<std::string, int64_t, std::less<>> values{
      {"strided", static_cast<int64_t>(c10::Layout::Strided)},
      {"contiguous_format", static_cast<int64_t>(c10::MemoryFormat::Contiguous)},
      {"preserve_format", static_cast<int64_t>(c10::MemoryFormat::Preserve)},
      {"channels_last", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast)},
      {"channels_last_3d", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d)}};
  const auto found = values.find(word);
  if (found == values.end())
    throw Error(ErrorCode::data, fmt::format("{}: {} is not known", place, word));
  return found->second;
}

class Converter {
 public:
  Converter(const c10::Argument& expected, const std::string& place)
      : expected_(expected), place_(place) {}

  ArgumentValue convert(const Argument& argument) const {
    const c10::TypePtr type = without_optional(expected_.type());
    if (const auto* reference = std::get_if<Reference>(&argument))
      return by_value(*reference, type);
    if (const auto* list = std::get_if<List>(&argument)) return by_list(*list, type);
    if (type->kind() == c10::TypeKind::ListType && !std::holds_alternative<None>(argument))
      return by_list(repeated(argument), type);
    return constant(single(argument, type));
  }

 private:
  static c10::TypePtr without_optional(c10::TypePtr type) {
    if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
    return type;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::data, fmt::format("{}: {} can't be {}", place_, expected_.name(), what));
  }
  static ArgumentValue constant(c10::IValue value) {
    return {.kind = ArgumentValue::Kind::constant, .constant = std::move(value)};
  }

  // One number where as many as the window has dimensions are expected.
  List repeated(const Argument& argument) const {
    return List(static_cast<size_t>(expected_.N().value_or(1)), argument);
  }

  ArgumentValue by_value(const Reference& reference, const c10::TypePtr& type) const {
    if (type->kind() != c10::TypeKind::ListType)
      return {.kind = ArgumentValue::Kind::value,
              .value = reference.value,
              .tensor = type->kind() == c10::TypeKind::TensorType};
    return by_list({Argument(reference)}, type);
  }

  c10::IValue single(const Argument& argument, const c10::TypePtr& type) const {
    switch (type->kind()) {
      case c10::TypeKind::TensorType:
        return tensor(argument);
      case c10::TypeKind::FloatType:
        if (const auto* number = std::get_if<int64_t>(&argument))
          return static_cast<double>(*number);
        break;
      case c10::TypeKind::StringType:
        if (const auto* word = std::get_if<program::Word>(&argument)) return word->text;
        break;
      case c10::TypeKind::DeviceObjType:
        if (std::holds_alternative<program::Word>(argument)) return c10::Device(c10::kCPU);
        break;
      default:
        break;
    }
    if (std::holds_alternative<None>(argument)) return {};
    if (const auto* flag = std::get_if<bool>(&argument)) return *flag;
    if (const auto* number = std::get_if<int64_t>(&argument)) return *number;
    if (const auto* number = std::get_if<double>(&argument)) return *number;
    if (const auto* text = std::get_if<std::string>(&argument)) return *text;
    if (const auto* dtype = std::get_if<program::DType>(&argument))
      return static_cast<int64_t>(scalar_type(*dtype));
    if (const auto* word = std::get_if<program::Word>(&argument))
      return word_value(word->text, place_);
    refuse("this kind of value");
  }

  c10::IValue tensor(const Argument& argument) const {
    if (std::holds_alternative<None>(argument)) return {};
    c10::Scalar number;
    if (const auto* flag = std::get_if<bool>(&argument))
      number = *flag;
    else if (const auto* whole = std::get_if<int64_t>(&argument))
      number = *whole;
    else if (const auto* real = std::get_if<double>(&argument))
      number = *real;
    else
      refuse("a constant that is no number");
    return number_as_tensor(number);
  }

  ArgumentValue by_list(const List& list, const c10::TypePtr& type) const {
    if (type->kind() != c10::TypeKind::ListType) refuse("a list");
    const c10::TypePtr element = type->cast<c10::ListType>()->getElementType();
    using Kind = ArgumentValue::Kind;
    switch (element->kind()) {
      case c10::TypeKind::TensorType:
        return elements(Kind::tensors, list);
      case c10::TypeKind::OptionalType:
        return elements(Kind::optional_tensors, list);
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        return integers(list);
      case c10::TypeKind::FloatType: {
        std::vector<double> numbers;
        for (const Argument& one : list) numbers.push_back(single(one, element).toDouble());
        return constant(numbers);
      }
      case c10::TypeKind::BoolType: {
        c10::List<bool> flags;
        for (const Argument& one : list) flags.push_back(single(one, element).toBool());
        return constant(flags);
      }
      case c10::TypeKind::NumberType: {
        c10::List<at::Scalar> numbers;
        for (const Argument& one : list) numbers.push_back(single(one, element).toScalar());
        return constant(c10::IValue(numbers));
      }
      default:
        refuse(fmt::format("a list of {}", element->str()));
    }
  }

  ArgumentValue elements(ArgumentValue::Kind kind, const List& list) const {
    ArgumentValue made{.kind = kind};
    for (const Argument& one : list) {
      const auto* reference = std::get_if<Reference>(&one);
      if (!reference && !std::holds_alternative<None>(one)) refuse("a list with numbers in it");
      made.list.push_back({.value = reference ? reference->value : program::kNoValue});
    }
    return made;
  }

  ArgumentValue integers(const List& list) const {
    ArgumentValue made{.kind = ArgumentValue::Kind::integers};
    bool fixed = true;
    std::vector<int64_t> numbers;
    for (const Argument& one : list) {
      if (const auto* reference = std::get_if<Reference>(&one)) {
        made.list.push_back({.value = reference->value});
        fixed = false;
        continue;
      }
      int64_t number = 0;
      if (const auto* whole = std::get_if<int64_t>(&one))
        number = *whole;
      else if (const auto* flag = std::get_if<bool>(&one))
        number = *flag;
      else
        refuse("a list of something else than whole numbers");
      made.list.push_back({.number = number});
      numbers.push_back(number);
    }
    return fixed ? constant(numbers) : made;
  }

  const c10::Argument& expected_;
  const std::string& place_;
};

}  // namespace

c10::IValue number_as_tensor(const c10::Scalar& number) {
  torch::Tensor wrapped = at::scalar_to_tensor(number);
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

ArgumentValue argument_value(const Argument& argument, const c10::Argument& expected,
                             const std::string& place) {
  return Converter(expected, place).convert(argument);
}

}  // namespace renkei::run
