// renkei model list, renkei model show NAME|FILE.pt2
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "job/planned_network.h"
#include "networks/input_shapes.h"
#include "networks/settings.h"
#include "program/effects.h"
#include "program/print.h"
#include "program/program_json.h"
#include "program/work.h"
#include "report/table.h"
#include "rewrite/rewrite.h"

namespace renkei::cli {
namespace {

using nlohmann::json;
using report::Align;

int list_models(const Invocation& invocation) {
  json rows = json::array();
  report::Table table({{"model"}, {"what it is"}});
  for (const networks::NetworkDescription& network : networks::networks()) {
    rows.push_back({{"model", network.name}, {"summary", network.summary}});
    table.add_row({network.name, network.summary});
  }
  if (invocation.json)
    fmt::print(
        "{}\n",
        json{{"command", invocation.command}, {"version", kVersion}, {"rows", rows}}.dump(2));
  else
    fmt::print("{}", table.text());
  return 0;
}

// What an operation computes and keeps, of one sample, forward.
struct Layer {
  std::string name, kind;
  std::vector<int64_t> output_shape;
  int64_t parameters = 0;
  int64_t flops = 0;  // of convolutions and matrix products, which published figures count
  int64_t activation_bytes = 0;
};

constexpr int64_t kSamples = 2;  // the work of one is half of the work of two

std::vector<Layer> layers_of(const program::Program& program) {
  const program::SymbolValues symbols = program::with_batch(program, kSamples);
  std::map<program::ValueId, int64_t> parameters;  // values of each that no layer has yet
  for (const program::State& state : program.state)
    if (state.kind == program::StateKind::parameter) {
      const program::Value& value = program.value(state.value);
      parameters[state.value] = program::bytes_of(value, {}) / program::bytes_of(value.dtype);
    }
  std::vector<Layer> layers;
  for (const program::Op& op : program.ops) {
    if (op.outputs.empty() || op.outputs[0] == program::kNoValue || program::is_view(op)) continue;
    const program::Value& made = program.value(op.outputs[0]);
    if (made.kind != program::ValueKind::tensor || made.sizes.empty() ||
        !made.sizes[0].mentions(program::batch_symbol(program)))
      continue;
    const program::Work work = program::work_of(program, op, symbols);
    Layer layer{.name = op.module, .kind = std::string(program::parts_of(op.target).name)};
    layer.output_shape = program::sizes_of(made, symbols);
    layer.output_shape.erase(layer.output_shape.begin());
    for (const program::ValueId used : program::references(op))
      if (const auto found = parameters.find(used); found != parameters.end())
        layer.parameters += std::exchange(found->second, 0);  // a tied one counts once
    layer.flops = static_cast<int64_t>(work.products) / kSamples;
    layer.activation_bytes = work.made_bytes / kSamples;
    layers.push_back(std::move(layer));
  }
  return layers;
}

json as_json(const std::vector<Layer>& layers) {
  json rows = json::array();
  for (const Layer& layer : layers)
    rows.push_back({{"name", layer.name},
                    {"kind", layer.kind},
                    {"output_shape", layer.output_shape},
                    {"parameters", layer.parameters},
                    {"flops", layer.flops},
                    {"activation_bytes", layer.activation_bytes}});
  return rows;
}

json as_json(const std::vector<rewrite::Applied>& applied) {
  json rows = json::array();
  for (const rewrite::Applied& one : applied)
    rows.push_back({{"rewrite", one.rewrite},
                    {"where", one.where},
                    {"applied", one.why_not.empty()},
                    {"why_not", one.why_not}});
  return rows;
}

json inputs_as_json(const program::Program& program) {
  json rows = json::array();
  const std::vector<networks::InputShape> shapes = networks::input_shapes(program);
  for (size_t i = 0; i < shapes.size(); ++i)
    rows.push_back({{"name", shapes[i].name},
                    {"dtype", program::name_of(program.value(program.inputs[i].value).dtype)},
                    {"shape", shapes[i].shape}});
  return rows;
}

// "input 3 × 32 × 32", or "inputs image 3 × 32 × 32, tokens 16".
std::string inputs_as_text(const program::Program& program) {
  std::vector<std::string> words;
  for (const networks::InputShape& input : networks::input_shapes(program))
    words.push_back(fmt::format(
        "{}{}", program.inputs.size() > 1 ? input.name + " " : "",
        input.shape.empty() ? "one number" : fmt::format("{}", fmt::join(input.shape, " × "))));
  return fmt::format("input{} {}", words.size() > 1 ? "s" : "", fmt::join(words, ", "));
}

std::string as_table(const std::vector<Layer>& layers) {
  report::Table table({{"layer"},
                       {"kind"},
                       {"output", Align::right},
                       {"parameters", Align::right},
                       {"MFLOP", Align::right},
                       {"activations", Align::right}});
  for (const Layer& layer : layers)
    table.add_row(
        {layer.name, layer.kind, fmt::format("{}", fmt::join(layer.output_shape, " × ")),
         layer.parameters > 0 ? format_count(layer.parameters) : "",
         layer.flops > 0 ? fmt::format("{:.1f}", static_cast<double>(layer.flops) / 1e6) : "",
         format_size(layer.activation_bytes)});
  return table.text();
}

// How often each rewrite was applied, and for what reasons it was not.
std::string as_table(const std::vector<rewrite::Applied>& applied) {
  struct Count {
    int applied = 0, not_applied = 0;
    std::string reason, where;
  };
  std::map<std::string, Count> counts;
  for (const rewrite::Applied& one : applied) {
    Count& count = counts[one.rewrite];
    ++(one.why_not.empty() ? count.applied : count.not_applied);
    if (one.why_not.empty() || !count.reason.empty()) continue;
    count.reason = one.why_not;
    count.where = one.where;
  }
  report::Table table(
      {{"rewrite"}, {"applied", Align::right}, {"not", Align::right}, {"why not, for example"}});
  for (const auto& [name, count] : counts)
    table.add_row({name, std::to_string(count.applied), std::to_string(count.not_applied),
                   count.reason.empty() ? "" : fmt::format("{}: {}", count.where, count.reason)});
  return table.text();
}

int show_model(Invocation& invocation, const std::string& name, bool ops) {
  Settings& settings = invocation.settings;
  settings.set("model.name", name, "model show");
  const job::PlannedNetwork planned = job::planned_network(settings);
  const networks::Network& network = planned.open.network;
  const program::Program training = capture::programs_of(planned.open, planned.loss).training;
  const rewrite::Rewritten rewritten =
      rewrite::rewrite(training, rewrite::rewrite_options(settings));
  const std::vector<Layer> layers = layers_of(network.training);
  const int64_t parameters = networks::count_parameters(network.training);
  int64_t flops = 0, activation_bytes = 0;
  for (const Layer& layer : layers) {
    flops += layer.flops;
    activation_bytes += layer.activation_bytes;
  }
  if (invocation.json) {
    json result{{"command", invocation.command},
                {"version", kVersion},
                {"model", networks::model_name(settings)},
                {"inputs", inputs_as_json(network.training)},
                {"parameters", parameters},
                {"flops", flops},
                {"activation_bytes", activation_bytes},
                {"rows", as_json(layers)},
                {"rewrites", as_json(rewritten.applied)}};
    if (ops) result["program"] = json::parse(program::to_json(rewritten.program));
    fmt::print("{}\n", result.dump(2));
    return 0;
  }
  if (ops) {
    fmt::print("{}", program::print(rewritten.program));
    return 0;
  }
  fmt::print(
      "{}\n{}\n{}, {}: {} parameters ({}), {:.3g} GFLOP and {} of activations per sample, "
      "forward\n",
      as_table(layers), as_table(rewritten.applied), networks::model_name(settings),
      inputs_as_text(network.training), format_count(parameters), format_size(4 * parameters),
      static_cast<double>(flops) / 1e9, format_size(activation_bytes));
  return 0;
}

}  // namespace

Command make_model_list_command() {
  return {.name = "model list",
          .summary = "list the built-in networks",
          .sections = {},
          .run = [](Invocation& invocation) { return list_models(invocation); }};
}

Command make_model_show_command() {
  const auto name = std::make_shared<std::string>();
  const auto ops = std::make_shared<bool>(false);
  return {
      .name = "model show",
      .summary = "show the layers of a network: shapes, parameters, FLOPs, memory, kernels",
      .sections = {},
      .add_flags =
          [name, ops](Arguments& arguments) {
            arguments.option("model", *name, "a network, or a .pt2 file")
                .value_name("NAME|FILE.pt2")
                .required();
            arguments.flag("--ops", *ops,
                           "print the program as it is trained, an operation a line");
          },
      .run = [name, ops](Invocation& invocation) { return show_model(invocation, *name, *ops); }};
}

}  // namespace renkei::cli
