#include "graph/graph_json.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "program/program.h"

namespace renkei::graph {
namespace {

constexpr int64_t kVersion = 1;
// Sums over a graph of a million parts stay exact in a double.
constexpr int64_t kMostBytes = int64_t{1} << 53;
constexpr double kMostSeconds = 1e9;
constexpr double kMostFlops = 1e30;

using Places = std::unordered_map<std::string, int>;

template <typename Part>
Places places_of(const std::vector<Part>& parts) {
  Places places;
  for (size_t i = 0; i < parts.size(); ++i) places.try_emplace(parts[i].id, static_cast<int>(i));
  return places;
}

std::vector<int> find_all(const JsonFields& fields, std::string_view name, const Places& places,
                          std::string_view kind) {
  std::vector<int> found;
  for (const std::string& id : fields.ids(name)) {
    const auto place = places.find(id);
    if (place == places.end())
      fields.refuse(name, fmt::format("ids of {}, and there is none with the id '{}'", kind, id));
    found.push_back(place->second);
  }
  return found;
}

// Where a value says what it consists of, its bytes must be those of its elements.
void check_bytes(const Value& value, const JsonFields& fields) {
  const auto element = program::dtype_from_name(value.dtype);
  if (!element || !fields.has("shape")) return;
  int64_t bytes = program::bytes_of(*element);
  for (const int64_t size : value.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) fields.refuse("shape", "smaller");
  if (bytes != value.bytes)
    fields.refuse("bytes", fmt::format("{}, as shape and dtype say", bytes));
}

Value value_from(const JsonFields& fields) {
  fields.allow_only({"id", "name", "shape", "dtype", "bytes", "batch", "gradient"});
  Value value{.id = fields.id("id"),
              .bytes = fields.integer("bytes", 0, kMostBytes),
              .batch = fields.boolean("batch"),
              .gradient = fields.boolean("gradient"),
              .name = fields.text_or("name", ""),
              .dtype = fields.text_or("dtype", "")};
  if (fields.has("shape")) value.shape = fields.integers("shape", 0, kMostBytes);
  check_bytes(value, fields);
  return value;
}

Parameter parameter_from(const JsonFields& fields) {
  fields.allow_only({"id", "name", "bytes", "trainable"});
  return {.id = fields.id("id"),
          .name = fields.text_or("name", ""),
          .bytes = fields.integer("bytes", 0, kMostBytes),
          .trainable = fields.boolean_or("trainable", true)};
}

Op op_from(const JsonFields& fields, const Places& values, const Places& parameters) {
  fields.allow_only({"id", "name", "kind", "inputs", "outputs", "parameters", "forward_seconds",
                     "backward_seconds", "forward_fixed_seconds", "backward_fixed_seconds",
                     "backward_input_share", "saved_bytes", "deferred_bytes", "workspace_bytes",
                     "flops", "traffic_bytes"});
  Op op{.id = fields.id("id"),
        .name = fields.text_or("name", ""),
        .kind = fields.text_or("kind", ""),
        .inputs = find_all(fields, "inputs", values, "values"),
        .outputs = find_all(fields, "outputs", values, "values"),
        .forward_seconds = fields.real("forward_seconds", 0, kMostSeconds),
        .backward_seconds = fields.real("backward_seconds", 0, kMostSeconds),
        .saved_bytes = fields.integer("saved_bytes", 0, kMostBytes),
        .deferred_bytes = fields.integer_or("deferred_bytes", 0, kMostBytes,
                                            fields.integer("saved_bytes", 0, kMostBytes)),
        .workspace_bytes = fields.integer_or("workspace_bytes", 0, kMostBytes, 0),
        .flops = fields.real_or("flops", 0, kMostFlops, 0),
        .traffic_bytes = fields.real_or("traffic_bytes", 0, kMostFlops, 0)};
  if (fields.has("parameters"))
    op.parameters = find_all(fields, "parameters", parameters, "parameters");
  op.forward_fixed_seconds = fields.real_or("forward_fixed_seconds", 0, op.forward_seconds, 0);
  op.backward_fixed_seconds = fields.real_or("backward_fixed_seconds", 0, op.backward_seconds, 0);
  // A layer with parameters spends about as long on their gradient as on that of its input.
  op.backward_input_share =
      fields.real_or("backward_input_share", 0, 1, op.parameters.empty() ? 1 : 0.5);
  return op;
}

template <typename Part>
nlohmann::json ids_of(const std::vector<int>& places, const std::vector<Part>& parts) {
  nlohmann::json ids = nlohmann::json::array();
  for (const int place : places) ids.push_back(json_id(parts[static_cast<size_t>(place)].id));
  return ids;
}

nlohmann::json op_to_json(const Op& op, const Graph& graph) {
  return {{"id", json_id(op.id)},
          {"name", op.name},
          {"kind", op.kind},
          {"inputs", ids_of(op.inputs, graph.values)},
          {"outputs", ids_of(op.outputs, graph.values)},
          {"parameters", ids_of(op.parameters, graph.parameters)},
          {"forward_seconds", op.forward_seconds},
          {"backward_seconds", op.backward_seconds},
          {"forward_fixed_seconds", op.forward_fixed_seconds},
          {"backward_fixed_seconds", op.backward_fixed_seconds},
          {"backward_input_share", op.backward_input_share},
          {"saved_bytes", op.saved_bytes},
          {"deferred_bytes", op.deferred_bytes},
          {"workspace_bytes", op.workspace_bytes},
          {"flops", op.flops},
          {"traffic_bytes", op.traffic_bytes}};
}

}  // namespace

nlohmann::json to_json(const Graph& graph) {
  nlohmann::json ops = nlohmann::json::array(), values = ops, parameters = ops;
  for (const Op& op : graph.ops) ops.push_back(op_to_json(op, graph));
  for (const Value& value : graph.values)
    values.push_back({{"id", json_id(value.id)},
                      {"name", value.name},
                      {"shape", value.shape},
                      {"dtype", value.dtype},
                      {"bytes", value.bytes},
                      {"batch", value.batch},
                      {"gradient", value.gradient}});
  for (const Parameter& parameter : graph.parameters)
    parameters.push_back({{"id", json_id(parameter.id)},
                          {"name", parameter.name},
                          {"bytes", parameter.bytes},
                          {"trainable", parameter.trainable}});
  return {{"version", kVersion},
          {"name", graph.name},
          {"batch", graph.batch},
          {"estimated", graph.estimated},
          {"ops", ops},
          {"values", values},
          {"parameters", parameters},
          {"inputs", ids_of(graph.inputs, graph.values)},
          {"outputs", ids_of(graph.outputs, graph.values)}};
}

Graph graph_from_json(const nlohmann::json& json, const std::string& source) {
  const JsonFields fields(json, source);
  if (const int64_t version = fields.integer("version", 0, INT64_MAX); version != kVersion)
    throw Error(ErrorCode::data,
                fmt::format("{}: graph files of version {} are not known", source, version),
                fmt::format("this renkei reads version {}", kVersion));
  fields.allow_only({"version", "name", "batch", "estimated", "ops", "values", "parameters",
                     "inputs", "outputs"});
  Graph graph{.name = fields.text_or("name", ""),
              .batch = fields.integer("batch", 1, int64_t{1} << 40),
              .estimated = fields.boolean_or("estimated", false)};
  for (const JsonFields& value : fields.objects("values"))
    graph.values.push_back(value_from(value));
  for (const JsonFields& parameter : fields.objects("parameters"))
    graph.parameters.push_back(parameter_from(parameter));
  const Places values = places_of(graph.values), parameters = places_of(graph.parameters);
  for (const JsonFields& op : fields.objects("ops"))
    graph.ops.push_back(op_from(op, values, parameters));
  graph.inputs = find_all(fields, "inputs", values, "values");
  graph.outputs = find_all(fields, "outputs", values, "values");
  check_and_sort(graph, source);
  return graph;
}

void save_graph(const Graph& graph, const std::filesystem::path& file) {
  write_file_atomically(file, to_json(graph).dump(1) + "\n");
}

Graph load_graph(const std::filesystem::path& file) {
  return graph_from_json(parse_json(read_file(file), file.string()), file.string());
}

}  // namespace renkei::graph
