// renkei bench compute: where does the time of a training step go, and how far is each layer from
// what the machine can do? Ops are measured one by one, the step as a whole, and both are set
// against the rate of a large matrix product in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "cli/train_output.h"
#include "job/network_data.h"
#include "job/planned_network.h"
#include "job/session.h"
#include "networks/settings.h"
#include "report/progress.h"
#include "report/table.h"
#include "run/device.h"
#include "run/make_model.h"
#include "run/memory.h"
#include "run/op_costs.h"

namespace renkei::cli {
namespace {

constexpr int64_t kProductSide = 1024;
constexpr int kProductRepetitions = 5;

struct Flags {
  int64_t batch = 8;
  int steps = 5;
  int top = 20;
};

struct Layer {
  std::string name, kind;
  double forward = 0, backward = 0;  // seconds
  double forward_flops = 0, backward_flops = 0;
  double forward_bytes = 0;
  double seconds() const { return forward + backward; }
  double flops() const { return forward_flops + backward_flops; }
};

struct Result {
  std::string model;
  int64_t batch = 0;
  int threads = 1;
  double step_seconds = 0;
  double peak = 0;  // FLOP/s of a large matrix product
  std::vector<Layer> layers;
  double flops() const {
    double sum = 0;
    for (const Layer& layer : layers) sum += layer.flops();
    return sum;
  }
};

double product_rate() {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor a = torch::rand({kProductSide, kProductSide});
  const torch::Tensor b = torch::rand({kProductSide, kProductSide});
  torch::Tensor c = torch::mm(a, b);
  double best = 1e9;
  for (int i = 0; i < kProductRepetitions; ++i) {
    const double begin = now_seconds();
    torch::mm_out(c, a, b);
    best = std::min(best, now_seconds() - begin);
  }
  return 2.0 * kProductSide * kProductSide * kProductSide / best;
}

// The gradients of the inputs and of the parameters are as much work as forward, each.
Layer layer_of(const graph::Graph& graph, const graph::Op& op) {
  Layer layer{.name = op.name,
              .kind = op.kind,
              .forward = op.forward_seconds,
              .backward = op.backward_seconds,
              .forward_bytes = op.traffic_bytes};
  double made = 0;
  for (const graph::ValueIndex value : op.outputs)
    made += static_cast<double>(graph.values[static_cast<size_t>(value)].bytes) / sizeof(float);
  if (op.flops <= 2 * made) return layer;  // no sums of products
  layer.forward_flops = op.flops;
  const bool of_inputs = std::ranges::any_of(op.inputs, [&](graph::ValueIndex value) {
    return graph.values[static_cast<size_t>(value)].gradient;
  });
  const bool of_parameters = std::ranges::any_of(op.parameters, [&](graph::ParameterIndex p) {
    return graph.parameters[static_cast<size_t>(p)].trainable;
  });
  const int inputs = static_cast<int>(op.inputs.size());
  // A product of two values, as in attention, has the gradients of both.
  const int gradients = of_parameters ? of_inputs + 1 : of_inputs * std::min(inputs, 2);
  layer.backward_flops = gradients * op.flops;
  return layer;
}

Result measure(const Flags& flags, const Settings& settings, bool quiet, RankContext& context) {
  run::install_memory_pools();
  run::set_threads(context.threads);
  const job::PlannedNetwork planned = job::planned_network(settings);
  run::Model model =
      run::make_model(planned.open, planned.loss, run::model_options(settings, context.threads));
  const auto data = job::make_random_data(planned.open.network, flags.batch * flags.steps, 1);
  Result result{
      .model = networks::model_name(settings), .batch = flags.batch, .threads = context.threads};
  result.peak = product_rate();

  report::Progress progress(report::progress_on_stderr());
  run::OpCostOptions costs{.samples = flags.batch, .compute = run::compute_options(settings)};
  if (!quiet)
    costs.progress = [&](int64_t done, int64_t total) {
      progress.update({.label = "measuring ops", .done = done, .total = total});
    };
  const graph::Graph graph = run::measured_graph(model, costs);
  for (const graph::Op& op : graph.ops) result.layers.push_back(layer_of(graph, op));

  const plan::BatchSizes batch{.global = flags.batch, .micro = flags.batch, .accumulation = 1};
  comm::Communicator communicator(context.world.transport(), {});
  NoOutput observer;
  const run::TrainJob job{.model = model,
                          .train_data = *data,
                          .held_out = nullptr,
                          .communicator = communicator,
                          .plan = plan::data_parallel_plan(batch)};
  const run::TrainResult trained =
      job::train(job, {.steps = flags.steps, .compute = run::compute_options(settings)}, observer);
  std::vector<double> steps;
  for (size_t s = 1; s < trained.step_times.size(); ++s)
    steps.push_back(trained.step_times[s].seconds);
  result.step_seconds = timeline::quantile(steps, 0.5);
  result.peak = std::max(result.peak, product_rate());
  return result;
}

void print_json(const Result& result) {
  nlohmann::json layers = nlohmann::json::array();
  for (const Layer& layer : result.layers)
    layers.push_back(
        {{"name", layer.name},
         {"kind", layer.kind},
         {"forward_seconds", layer.forward},
         {"backward_seconds", layer.backward},
         {"gflops", layer.flops() / std::max(layer.seconds(), 1e-12) / 1e9},
         {"peak_fraction", layer.flops() / std::max(layer.seconds(), 1e-12) / result.peak}});
  const double rate = result.flops() / result.step_seconds;
  const nlohmann::json row{
      {"model", result.model},
      {"batch", result.batch},
      {"threads", result.threads},
      {"samples_per_second", static_cast<double>(result.batch) / result.step_seconds},
      {"step_seconds", result.step_seconds},
      {"gflops", rate / 1e9},
      {"peak_gflops", result.peak / 1e9},
      {"peak_fraction", rate / result.peak},
      {"layers", layers},
      {"peers", nlohmann::json::object()},
      {"ratio", nullptr}};
  fmt::print(
      "{}\n",
      nlohmann::json{{"command", "bench compute"}, {"version", kVersion}, {"rows", {row}}}.dump(2));
}

std::string rate_text(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds / 1e9) : "-";
}

void add_row(report::Table& table, const Layer& layer, double all_seconds, double peak) {
  table.add_row(
      {layer.name, layer.kind, fmt::format("{:.1f} %", 100 * layer.seconds() / all_seconds),
       format_duration(layer.forward), format_duration(layer.backward),
       rate_text(layer.forward_flops, layer.forward),
       rate_text(layer.backward_flops, layer.backward),
       layer.flops() > 0 ? fmt::format("{:.0f} %", 100 * layer.flops() / layer.seconds() / peak)
                         : "-",
       layer.flops() > 0 ? "-" : rate_text(layer.forward_bytes, layer.forward)});
}

report::Table new_table(const std::string& first) {
  using report::Align;
  return report::Table({{first},
                        {"op"},
                        {"of the time", Align::right},
                        {"forward", Align::right},
                        {"backward", Align::right},
                        {"GFLOP/s", Align::right},
                        {"backward", Align::right},
                        {"of peak", Align::right},
                        {"GB/s", Align::right}});
}

void print_text(const Result& result, int top) {
  std::map<std::string, Layer> kinds;
  std::map<std::string, int> count;
  double all = 0;
  for (const Layer& layer : result.layers) {
    Layer& kind = kinds[layer.kind];
    kind.kind = layer.kind;
    kind.forward += layer.forward;
    kind.backward += layer.backward;
    kind.forward_flops += layer.forward_flops;
    kind.backward_flops += layer.backward_flops;
    kind.forward_bytes += layer.forward_bytes;
    ++count[layer.kind];
    all += layer.seconds();
  }
  const auto longest_first = [](const Layer& a, const Layer& b) {
    return a.seconds() > b.seconds();
  };
  std::vector<Layer> by_kind;
  for (auto& [name, kind] : kinds) {
    kind.name = fmt::format("{} of", count[name]);
    by_kind.push_back(kind);
  }
  std::ranges::sort(by_kind, longest_first);
  report::Table summary = new_table("ops");
  for (const Layer& kind : by_kind) add_row(summary, kind, all, result.peak);
  fmt::print("{}\n", summary.text());

  std::vector<Layer> layers = result.layers;
  std::ranges::sort(layers, longest_first);
  const size_t shown = std::min(layers.size(), static_cast<size_t>(top));
  layers.resize(shown);
  report::Table table = new_table("layer");
  for (const Layer& layer : layers) add_row(table, layer, all, result.peak);
  if (shown > 0) fmt::print("{}\n", table.text());

  const double rate = result.flops() / result.step_seconds;
  fmt::print(
      "{}, batch {}, threads {}: {} a step, {:.2f} samples/s; {:.1f} GFLOP/s, {:.0f} % of the\n"
      "{:.1f} of a matrix product of {} x {}. The ops by themselves: {}, {:.0f} % of the step.\n"
      "Work is counted as products of the plain way: Winograd's convolutions do with fewer, and "
      "may\n"
      "show more than the peak.\n",
      result.model, result.batch, result.threads, format_duration(result.step_seconds),
      static_cast<double>(result.batch) / result.step_seconds, rate / 1e9, 100 * rate / result.peak,
      result.peak / 1e9, kProductSide, kProductSide, format_duration(all),
      100 * all / result.step_seconds);
}

}  // namespace

Command make_bench_compute_command() {
  const auto flags = std::make_shared<Flags>();
  return {
      .name = "bench compute",
      .summary = "the time and the rate of each layer of a network, against a matrix product",
      .sections = {"model", "compute"},
      .add_flags =
          [flags](Arguments& arguments) {
            // Ops are measured with two samples at least.
            arguments.option("--batch", flags->batch, "samples of a step")
                .range(int64_t{2}, int64_t{1} << 20)
                .show_default();
            arguments.option("--steps", flags->steps, "steps to train; the first does not count")
                .range(2, 1 << 20)
                .show_default();
            arguments.option("--top", flags->top, "layers to show, those that take longest")
                .range(0, 1 << 20)
                .show_default();
          },
      .run =
          [flags](Invocation& invocation) {
            if (expected_ranks(invocation) > 1)
              throw Error(ErrorCode::usage, "bench compute measures one rank",
                          "leave -n out; for more cores: --set run.threads=2");
            return run_on_ranks(invocation, [&](RankContext& context) {
              const Result result = measure(*flags, invocation.settings, invocation.quiet, context);
              invocation.json ? print_json(result) : print_text(result, flags->top);
            });
          }};
}

}  // namespace renkei::cli
