#include "program/program_json.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"

namespace renkei::program {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kFormat = "renkei program";
constexpr size_t kLargestText = size_t{256} << 20;
constexpr int kDeepestArgument = 16;
constexpr size_t kMostSides = 64;

template <typename Kind, size_t n>
struct KindNames {
  std::array<std::string_view, n> names;

  std::string_view operator[](Kind kind) const { return names.at(static_cast<size_t>(kind)); }

  Kind find(const JsonFields& fields, std::string_view key, Kind otherwise) const {
    if (!fields.has(key)) return otherwise;
    const std::string text = fields.text(key);
    for (size_t i = 0; i < n; ++i)
      if (names[i] == text) return static_cast<Kind>(i);
    fields.refuse(key, fmt::format("one of {}", fmt::join(names, ", ")));
  }
};

constexpr KindNames<ValueKind, 4> kValueKinds{{"tensor", "integer", "real", "boolean"}};
constexpr KindNames<StateKind, 3> kStateKinds{{"parameter", "buffer", "constant"}};
constexpr KindNames<Initial::Kind, 6> kInitialKinds{
    {"given", "constant", "uniform", "normal", "truncated_normal", "count"}};

Json json_of_real(double number) {
  if (std::isfinite(number)) return number;
  return {{"real", std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf"}};
}

Json json_of(const Argument& argument) {
  struct Writer {
    Json operator()(None) const { return nullptr; }
    Json operator()(Reference reference) const { return {{"value", reference.value}}; }
    Json operator()(bool value) const { return value; }
    Json operator()(int64_t value) const { return value; }
    Json operator()(double value) const { return json_of_real(value); }
    Json operator()(const std::string& value) const { return value; }
    Json operator()(DType value) const { return {{"dtype", name_of(value)}}; }
    Json operator()(const Word& value) const { return {{"word", value.text}}; }
    Json operator()(const List& list) const {
      Json items = Json::array();
      for (const Argument& item : list) items.push_back(json_of(item));
      return items;
    }
  };
  return std::visit(Writer{}, static_cast<const Argument::variant&>(argument));
}

Json json_of(const Symbol& symbol) {
  Json json{{"name", symbol.name}};
  if (symbol.low != 1) json["low"] = symbol.low;
  if (symbol.high != INT64_MAX) json["high"] = symbol.high;
  if (symbol.batch) json["batch"] = true;
  return json;
}

Json json_of(const Value& value) {
  Json json{{"name", value.name}};
  if (value.kind != ValueKind::tensor) {
    json["kind"] = kValueKinds[value.kind];
    return json;
  }
  json["dtype"] = name_of(value.dtype);
  json["sizes"] = Json::array();
  for (const Size& size : value.sizes)
    json["sizes"].push_back(size.is_number() ? Json(size.number()) : Json(size.text()));
  return json;
}

Json json_of(const State& state) {
  Json json{{"name", state.name}, {"kind", kStateKinds[state.kind]}, {"value", state.value}};
  if (state.initial.kind != Initial::Kind::given) {
    Json& initial = json["initial"] = {{"kind", kInitialKinds[state.initial.kind]}};
    if (state.initial.a != 0) initial["a"] = json_of_real(state.initial.a);
    if (state.initial.b != 0) initial["b"] = json_of_real(state.initial.b);
  }
  if (!state.aliases.empty()) json["aliases"] = state.aliases;
  if (!state.trainable) json["trainable"] = false;
  if (!state.persistent) json["persistent"] = false;
  return json;
}

Json json_of(const Port& port) {
  return {{"name", port.name}, {"value", port.value}};
}

Json json_of(const Op& op) {
  Json json{{"target", op.target}, {"arguments", Json::array()}, {"outputs", op.outputs}};
  for (const NamedArgument& argument : op.arguments)
    json["arguments"].push_back(Json::array({argument.name, json_of(argument.value)}));
  if (!op.module.empty()) json["module"] = op.module;
  if (!op.source.empty()) json["source"] = op.source;
  if (op.no_grad) json["no_grad"] = true;
  return json;
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Item>
std::string lines_of(std::string_view name, const std::vector<Item>& items) {
  std::string all = fmt::format(",\n\"{}\": [", name);
  for (size_t i = 0; i < items.size(); ++i)
    all += (i == 0 ? "\n " : ",\n ") + line_of(json_of(items[i]));
  return all + "]";
}

// An object whose keys are all known.
JsonFields fields_of(const nlohmann::json& json, std::string place,
                     std::initializer_list<std::string_view> keys) {
  JsonFields fields(json, place);
  for (const auto& [key, unused] : json.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw Error(ErrorCode::data,
                  fmt::format("{} has the unknown key \"{}\"", place, key.substr(0, 100)),
                  fmt::format("known are {}", fmt::join(keys, ", ")));
  return fields;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Program read(const nlohmann::json& json) {
    check_version(json);
    const JsonFields all = fields_of(
        json, file_,
        {"format", "version", "name", "symbols", "values", "state", "inputs", "outputs", "ops"});
    Program program{.name = all.text_or("name", "")};
    each(json, "symbols",
         [&](const auto& item, auto& place) { program.symbols.push_back(symbol(item, place)); });
    each(json, "values",
         [&](const auto& item, auto& place) { program.values.push_back(value(item, place)); });
    each(json, "state",
         [&](const auto& item, auto& place) { program.state.push_back(state(item, place)); });
    each(json, "inputs",
         [&](const auto& item, auto& place) { program.inputs.push_back(port(item, place)); });
    each(json, "outputs",
         [&](const auto& item, auto& place) { program.outputs.push_back(port(item, place)); });
    each(json, "ops",
         [&](const auto& item, auto& place) { program.ops.push_back(op(item, place)); });
    return program;
  }

 private:
  [[noreturn]] static void refuse(const std::string& place, std::string_view must) {
    throw Error(ErrorCode::data, fmt::format("{} must be {}", place, must));
  }

  void check_version(const nlohmann::json& json) const {
    const JsonFields fields(json, file_);
    if (!fields.has("format") || fields.text("format") != kFormat)
      throw Error(ErrorCode::data, fmt::format("{} is not a program of Renkei", file_),
                  fmt::format("such a file begins with {{\"format\": \"{}\"", kFormat));
    const int64_t version = fields.integer("version", 1, INT32_MAX);
    if (version > kFormatVersion)
      throw Error(ErrorCode::data,
                  fmt::format("{} has version {} of the program format, and this Renkei reads "
                              "up to version {}",
                              file_, version, kFormatVersion),
                  "use the Renkei that wrote it, or a newer one");
  }

  template <typename Read>
  void each(const nlohmann::json& json, const char* name, Read read) const {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_array())
      refuse(fmt::format("{}: {}", file_, name), "a list");
    size_t index = 0;
    for (const nlohmann::json& item : *found) {
      const std::string place = fmt::format("{}: {}[{}]", file_, name, index++);
      read(item, place);
    }
  }

  static ValueId id(const JsonFields& fields, std::string_view name) {
    return static_cast<ValueId>(fields.integer(name, 0, INT32_MAX));
  }

  static Symbol symbol(const nlohmann::json& json, const std::string& place) {
    const JsonFields fields = fields_of(json, place, {"name", "low", "high", "batch"});
    return {.name = fields.text("name"),
            .low = fields.integer_or("low", 0, INT64_MAX, 1),
            .high = fields.integer_or("high", 0, INT64_MAX, INT64_MAX),
            .batch = fields.boolean_or("batch", false)};
  }

  static Value value(const nlohmann::json& json, const std::string& place) {
    const JsonFields fields = fields_of(json, place, {"name", "kind", "dtype", "sizes"});
    Value value{.name = fields.text_or("name", ""),
                .kind = kValueKinds.find(fields, "kind", ValueKind::tensor)};
    if (value.kind != ValueKind::tensor && !fields.has("dtype") && !fields.has("sizes"))
      return value;
    value.dtype = dtype(fields, "dtype");
    const auto sizes = json.find("sizes");
    if (sizes == json.end() || !sizes->is_array() || sizes->size() > kMostSides)
      refuse(place + ".sizes", fmt::format("a list of up to {} sizes", kMostSides));
    for (const nlohmann::json& size : *sizes) value.sizes.push_back(size_of(size, place));
    return value;
  }

  static Size size_of(const nlohmann::json& json, const std::string& place) {
    if (json.is_number_integer() && (json.is_number_unsigned() || json.get<int64_t>() >= 0) &&
        json.get<uint64_t>() <= uint64_t{INT64_MAX})
      return json.get<int64_t>();
    if (!json.is_string()) refuse(place + ".sizes", "made of whole numbers and expressions");
    try {
      return Size::expression(json.get<std::string>());
    } catch (const Error& error) {
      throw Error(error.code, fmt::format("{}.sizes: {}", place, error.message));
    }
  }

  static DType dtype(const JsonFields& fields, std::string_view name) {
    const auto found = dtype_from_name(fields.text(name));
    if (!found) fields.refuse(name, "the name of a type, such as f32");
    return *found;
  }

  static State state(const nlohmann::json& json, const std::string& place) {
    const JsonFields fields = fields_of(
        json, place, {"name", "kind", "value", "initial", "aliases", "trainable", "persistent"});
    State state{.name = fields.text("name"),
                .kind = kStateKinds.find(fields, "kind", StateKind::parameter),
                .value = id(fields, "value"),
                .trainable = fields.boolean_or("trainable", true),
                .persistent = fields.boolean_or("persistent", true)};
    if (fields.has("initial")) state.initial = initial(json["initial"], place + ".initial");
    if (!fields.has("aliases")) return state;
    const nlohmann::json& aliases = json["aliases"];
    if (!aliases.is_array()) refuse(place + ".aliases", "a list of names");
    for (const nlohmann::json& alias : aliases) {
      if (!alias.is_string()) refuse(place + ".aliases", "a list of names");
      state.aliases.push_back(alias.get<std::string>());
    }
    return state;
  }

  static Initial initial(const nlohmann::json& json, const std::string& place) {
    const JsonFields fields = fields_of(json, place, {"kind", "a", "b"});
    const auto number = [&](const char* name) {
      if (!fields.has(name)) return 0.0;
      if (json[name].is_number()) return json[name].get<double>();
      if (const auto given = special(json[name])) return *given;
      fields.refuse(name, "a number");
    };
    return {.kind = kInitialKinds.find(fields, "kind", Initial::Kind::given),
            .a = number("a"),
            .b = number("b")};
  }

  static std::optional<double> special(const nlohmann::json& json) {
    if (!json.is_object() || json.size() != 1 || !json.contains("real")) return {};
    if (json["real"] == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (json["real"] == "inf") return std::numeric_limits<double>::infinity();
    if (json["real"] == "-inf") return -std::numeric_limits<double>::infinity();
    return {};
  }

  static Port port(const nlohmann::json& json, const std::string& place) {
    const JsonFields fields = fields_of(json, place, {"name", "value"});
    return {.name = fields.text("name"), .value = id(fields, "value")};
  }

  static Op op(const nlohmann::json& json, const std::string& place) {
    const JsonFields fields =
        fields_of(json, place, {"target", "arguments", "outputs", "module", "source", "no_grad"});
    Op op{.target = fields.text("target"),
          .arguments = {},
          .outputs = {},
          .module = fields.text_or("module", ""),
          .source = fields.text_or("source", ""),
          .no_grad = fields.boolean_or("no_grad", false)};
    for (const int64_t output : fields.integers("outputs", kNoValue, INT32_MAX))
      op.outputs.push_back(static_cast<ValueId>(output));
    const auto arguments = json.find("arguments");
    if (arguments == json.end() || !arguments->is_array()) refuse(place + ".arguments", "a list");
    for (const nlohmann::json& pair : *arguments) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string())
        refuse(place + ".arguments", "a list of pairs [name, value]");
      const auto name = pair[0].get<std::string>();
      op.arguments.push_back({name, argument(pair[1], fmt::format("{}: {}", place, name), 0)});
    }
    return op;
  }

  static Argument argument(const nlohmann::json& json, const std::string& place, int depth) {
    if (json.is_null()) return None{};
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_string()) return json.get<std::string>();
    if (json.is_number_float()) return json.get<double>();
    if (json.is_number_integer()) {
      if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX})
        refuse(place, "a number of 64 bits");
      return json.get<int64_t>();
    }
    if (json.is_object()) return tagged(json, place);
    if (depth == kDeepestArgument) refuse(place, "less deep");
    List items;
    items.reserve(json.size());
    for (const nlohmann::json& item : json) items.push_back(argument(item, place, depth + 1));
    return items;
  }

  static Argument tagged(const nlohmann::json& json, const std::string& place) {
    const JsonFields fields = fields_of(json, place, {"value", "dtype", "word", "real"});
    if (json.size() != 1) refuse(place, "an object with one key");
    if (fields.has("value")) return Reference{id(fields, "value")};
    if (fields.has("dtype")) return dtype(fields, "dtype");
    if (fields.has("word")) return Word{fields.text("word")};
    if (const auto number = special(json)) return *number;
    refuse(place + ".real", "inf, -inf or nan");
  }

  const std::string& file_;
};

}  // namespace

std::string to_json(const Program& program) {
  return fmt::format("{{\"format\": \"{}\", \"version\": {}, \"name\": {}", kFormat, kFormatVersion,
                     line_of(program.name)) +
         lines_of("symbols", program.symbols) + lines_of("values", program.values) +
         lines_of("state", program.state) + lines_of("inputs", program.inputs) +
         lines_of("outputs", program.outputs) + lines_of("ops", program.ops) + "}\n";
}

Program from_json(std::string_view text, const std::string& file) {
  if (text.size() > kLargestText)
    throw Error(ErrorCode::data,
                fmt::format("{} has {} bytes, more than a program can have", file, text.size()));
  Program program = Reader(file).read(parse_json(text, file));
  check(program, file);
  return program;
}

}  // namespace renkei::program
