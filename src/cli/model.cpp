// renkei model list, renkei model show NAME|FILE.pt
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "model/layer_costs.h"
#include "report/table.h"
#include "run/device.h"

namespace renkei::cli {
namespace {

using nlohmann::json;
using report::Align;

int list_models(const Invocation& invocation) {
  json rows = json::array();
  report::Table table({{"model"}, {"what it is"}});
  for (const model::NetworkDescription& network : model::networks()) {
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

struct Totals {
  int64_t flops = 0, activation_bytes = 0;
};

json as_json(const std::vector<model::LayerCost>& layers) {
  json rows = json::array();
  for (const model::LayerCost& layer : layers)
    rows.push_back({{"name", layer.name},
                    {"kind", layer.kind},
                    {"output_shape", layer.output_shape},
                    {"parameters", layer.parameters},
                    {"flops", layer.flops},
                    {"activation_bytes", layer.activation_bytes}});
  return rows;
}

std::string as_table(const std::vector<model::LayerCost>& layers) {
  report::Table table({{"layer"},
                       {"kind"},
                       {"output", Align::right},
                       {"parameters", Align::right},
                       {"MFLOP", Align::right},
                       {"activations", Align::right}});
  for (const model::LayerCost& layer : layers)
    table.add_row(
        {layer.name, layer.kind, fmt::format("{}", fmt::join(layer.output_shape, " × ")),
         layer.parameters > 0 ? format_count(layer.parameters) : "",
         layer.flops > 0 ? fmt::format("{:.1f}", static_cast<double>(layer.flops) / 1e6) : "",
         format_size(layer.activation_bytes)});
  return table.text();
}

int show_model(Invocation& invocation, const std::string& name) {
  Settings& settings = invocation.settings;
  settings.set("model.name", name, "model show");
  run::set_threads(static_cast<int>(settings.integer_unless_auto("run.threads").value_or(1)));
  const auto network =
      model::make_network(settings, static_cast<uint64_t>(settings.integer("run.seed")));
  const std::vector<model::LayerCost> layers = model::layer_costs(*network);
  const int64_t parameters = model::count_parameters(*network);
  Totals totals;
  for (const model::LayerCost& layer : layers) {
    totals.flops += layer.flops;
    totals.activation_bytes += layer.activation_bytes;
  }
  if (invocation.json) {
    fmt::print("{}\n", json{{"command", invocation.command},
                            {"version", kVersion},
                            {"model", model::model_name(settings)},
                            {"input_shape", network->input_shape()},
                            {"parameters", parameters},
                            {"flops", totals.flops},
                            {"activation_bytes", totals.activation_bytes},
                            {"rows", as_json(layers)}}
                           .dump(2));
    return 0;
  }
  fmt::print(
      "{}\n{}, input {}: {} parameters ({}), {:.3g} GFLOP and {} of activations per sample, "
      "forward\n",
      as_table(layers), model::model_name(settings), fmt::join(network->input_shape(), " × "),
      format_count(parameters), format_size(4 * parameters),
      static_cast<double>(totals.flops) / 1e9, format_size(totals.activation_bytes));
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
  return {.name = "model show",
          .summary = "show the layers of a network: shapes, parameters, FLOPs, memory",
          .sections = {},
          .add_flags =
              [name](Arguments& arguments) {
                arguments.option("model", *name, "a network, or a TorchScript file")
                    .value_name("NAME|FILE.pt")
                    .required();
              },
          .run = [name](Invocation& invocation) { return show_model(invocation, *name); }};
}

}  // namespace renkei::cli
