#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "base/version.h"
#include "bench/data.h"
#include "capture/open_network.h"
#include "cli/commands.h"
#include "cli/data_sources.h"
#include "data/loader/loader_settings.h"
#include "data/storage/storage_settings.h"
#include "job/training_data.h"
#include "networks/settings.h"
#include "program/work.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

struct Flags {
  std::vector<std::string> sources;
  std::string accelerator = "none";
  std::string network = "resnet50";
  std::string sizes;
  std::string memory_limit;
  int64_t batch = 256, steps = 0, epochs = 2;
  int side = 224;
  bool decode = false;
};

// Of a sample, forward, as published figures count it.
double flops_of(Settings settings, const std::string& network, const std::string& origin) {
  settings.set("model.name", network, origin);
  const program::Program program = capture::open_network(settings).network.training;
  constexpr int64_t kSamples = 2;  // files may not hold for one
  const program::SymbolValues symbols = program::with_batch(program, kSamples);
  double products = 0;
  for (const program::Op& op : program.ops)
    products += program::work_of(program, op, symbols).products;
  return products / kSamples;
}

// The work of a network for a sample, over that of ResNet-50, of which the times are known.
double work_of(const Settings& settings, const std::string& network) {
  Settings standard;
  networks::declare_settings(standard);
  return flops_of(settings, network, "--network") / flops_of(standard, "resnet50", "--network");
}

double seconds_per_sample(const Flags& flags, double work) {
  if (flags.accelerator == "none") return 0;
  for (const bench::Accelerator& known : bench::known_accelerators())
    if (known.name == flags.accelerator) return known.seconds_per_sample * work;
  return parse_duration(flags.accelerator) / static_cast<double>(flags.batch);
}

std::vector<bench::DataRow> measure(const Invocation& invocation, const Flags& flags, double work) {
  const Settings& settings = invocation.settings;
  bench::DataOptions options{.batch = flags.batch,
                             .epochs = flags.epochs,
                             .most_steps = flags.steps,
                             .seconds_per_sample = seconds_per_sample(flags, work),
                             .bare_decoding = flags.decode,
                             .seed = static_cast<uint64_t>(settings.integer("run.seed"))};
  options.transform = {.height = flags.side,
                       .width = flags.side,
                       .crop = data::Crop::random,
                       .flip = true,
                       .normalisation = job::normalisation_of(settings)};
  options.loader = data::loader_options(settings, 0);
  if (const auto threads = settings.integer_unless_auto("run.threads"))
    options.loader.threads = static_cast<int>(*threads);
  options.storage = data::storage_options(settings);
  if (!flags.memory_limit.empty()) {
    options.loader.memory_bytes = parse_size(flags.memory_limit);
    options.storage.direct = true;  // or else the page cache of the system would be memory, too
  }
  std::vector<bench::DataRow> rows;
  for (const std::string& source : flags.sources) {
    options.source = source;
    const auto add = [&] {
      if (!invocation.quiet) fmt::print(stderr, "{} …\n", source);
      rows.push_back(bench::measure_data(options));
    };
    options.most_samples = 0;
    if (flags.sizes.empty()) {
      add();
      continue;
    }
    const OpenedSources opened = open_sources(invocation, source);
    const int64_t all = opened.train->count();
    int64_t bytes = 0;
    for (int64_t sample = 0; sample < all; ++sample) bytes += opened.train->bytes(sample);
    for (const int64_t size : parse_sweep(flags.sizes)) {
      if (size > bytes)
        throw Error(ErrorCode::usage,
                    fmt::format("{} has {}, less than the {} of the sweep", source,
                                format_size(bytes), format_size(size)),
                    "shorten --sizes, or make a larger data set: renkei data synth --shards");
      options.most_samples = std::max<int64_t>(
          1, static_cast<int64_t>(static_cast<double>(size) / static_cast<double>(bytes) *
                                  static_cast<double>(all)));
      add();
    }
  }
  return rows;
}

std::string table_of(const std::vector<bench::DataRow>& rows) {
  using report::Align;
  report::Table table({{"source"},
                       {"data", Align::right},
                       {"memory", Align::right},
                       {"samples/s", Align::right},
                       {"MB/s", Align::right},
                       {"us/sample", Align::right},
                       {"util", Align::right},
                       {"opens", Align::right},
                       {"read/used", Align::right},
                       {"wait p50", Align::right},
                       {"p99 us", Align::right},
                       {"peak", Align::right},
                       {"decode/s", Align::right},
                       {"shuffle", Align::right}});
  for (const bench::DataRow& row : rows)
    table.add_row(
        {row.source, format_size(row.dataset_bytes), format_size(row.memory_limit_bytes),
         fmt::format("{:.0f}", row.samples_per_second), fmt::format("{:.1f}", row.mb_per_second),
         fmt::format("{:.0f}", 1e6 / row.samples_per_second),
         row.utilisation ? fmt::format("{:.1f} %", *row.utilisation * 100) : "",
         format_count(row.opens), fmt::format("{:.2f}", row.read_amplification),
         fmt::format("{:.0f}", row.wait_p50_us), fmt::format("{:.0f}", row.wait_p99_us),
         format_size(row.peak_memory_bytes),
         row.decode_samples_per_second > 0 ? fmt::format("{:.0f}", row.decode_samples_per_second)
                                           : "",
         fmt::format("{:.2f}", row.shuffle_quality)});
  return table.text();
}

struct Demand {
  std::string accelerator;
  double samples_per_second = 0, mb_per_second = 0;
  double fed = 0;  // accelerators that what was measured keeps busy: beyond that, data limits
};

// What a network needs of this data on each accelerator, beside what was measured.
std::vector<Demand> demand_of(const bench::DataRow& row, double work) {
  std::vector<Demand> list;
  const double bytes = static_cast<double>(row.dataset_bytes) / static_cast<double>(row.samples);
  for (const bench::Accelerator& accelerator : bench::known_accelerators()) {
    const double rate = 1 / (accelerator.seconds_per_sample * work);
    list.push_back({.accelerator = accelerator.name,
                    .samples_per_second = rate,
                    .mb_per_second = rate * bytes / 1e6,
                    .fed = row.samples_per_second / rate});
  }
  return list;
}

std::string text_of(const std::vector<Demand>& list, const std::string& network) {
  using report::Align;
  report::Table table({{network + " needs, on"},
                       {"samples/s", Align::right},
                       {"MB/s", Align::right},
                       {"this feeds", Align::right}});
  for (const Demand& demand : list)
    table.add_row({"one " + demand.accelerator, fmt::format("{:.0f}", demand.samples_per_second),
                   fmt::format("{:.1f}", demand.mb_per_second),
                   fmt::format("{:.1f} of them", demand.fed)});
  return "\n" + table.text();
}

nlohmann::json json_of(const std::vector<Demand>& list) {
  nlohmann::json json = nlohmann::json::array();
  for (const Demand& demand : list)
    json.push_back({{"accelerator", demand.accelerator},
                    {"samples_per_second", demand.samples_per_second},
                    {"mb_per_second", demand.mb_per_second},
                    {"accelerators_fed", demand.fed}});
  return json;
}

nlohmann::json json_of(const bench::DataRow& row) {
  nlohmann::json json{{"source", row.source},
                      {"format", row.format},
                      {"samples", row.samples},
                      {"dataset_bytes", row.dataset_bytes},
                      {"memory_limit_bytes", row.memory_limit_bytes},
                      {"epoch_seconds", row.epoch_seconds},
                      {"samples_per_second", row.samples_per_second},
                      {"mb_per_second", row.mb_per_second},
                      {"accelerator_utilisation", nullptr},
                      {"opens", row.opens},
                      {"read_amplification", row.read_amplification},
                      {"wait_p50_us", row.wait_p50_us},
                      {"wait_p99_us", row.wait_p99_us},
                      {"peak_memory_bytes", row.peak_memory_bytes},
                      {"decode_samples_per_second", row.decode_samples_per_second},
                      {"shuffle_quality", row.shuffle_quality},
                      {"peers", nlohmann::json::object()},
                      {"ratio", nullptr}};
  if (row.utilisation) json["accelerator_utilisation"] = *row.utilisation;
  return json;
}

int run(Invocation& invocation, const Flags& flags) {
  const double work = work_of(invocation.settings, flags.network);
  const std::vector<bench::DataRow> rows = measure(invocation, flags, work);
  if (!invocation.json) {
    fmt::print("{}", table_of(rows));
    if (flags.accelerator == "none")
      fmt::print("{}", text_of(demand_of(rows.front(), work), flags.network));
    return 0;
  }
  nlohmann::json list = nlohmann::json::array();
  for (const auto& row : rows) {
    list.push_back(json_of(row));
    // An accelerator that waits does not show how fast data could come.
    if (flags.accelerator == "none") list.back()["demand"] = json_of(demand_of(row, work));
  }
  fmt::print("{}\n", nlohmann::json{{"command", invocation.command},
                                    {"version", kVersion},
                                    {"ranks", 1},
                                    {"hosts", 1},
                                    {"threads_per_rank", threads_of(invocation.settings)},
                                    {"rows", list}}
                         .dump(2));
  return 0;
}

}  // namespace

Command make_bench_data_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "bench data",
          .summary = "how fast data arrives, and whether an accelerator would wait for it",
          .sections = {},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments.option("sources", flags->sources, "data sets of images").required();
                arguments
                    .option("--accelerator", flags->accelerator,
                            "emulate a v100, a100 or h100, or a time per batch; "
                            "none takes batches as they come")
                    .show_default();
                arguments
                    .option("--network", flags->network,
                            "whose computing is emulated; the time of others than resnet50 follows "
                            "from their work")
                    .show_default()
                    .value_name("NAME|FILE.pt2");
                arguments.option("--batch", flags->batch, "samples in a batch")
                    .show_default()
                    .range(int64_t{1}, int64_t{1} << 20);
                arguments.option("--side", flags->side, "random crops are resized to this")
                    .show_default()
                    .range(8, 4096);
                arguments.option("--epochs", flags->epochs, "the last one is measured")
                    .show_default()
                    .range(int64_t{1}, int64_t{1000});
                arguments.option("--steps", flags->steps, "measure this many steps; 0: the epoch")
                    .show_default();
                arguments.option("--memory-limit", flags->memory_limit,
                                 "memory of the loader, with reads past the page cache");
                arguments.option("--sizes", flags->sizes,
                                 "use the first part of the data set, of these sizes: a sweep");
                arguments.flag("--decode", flags->decode,
                               "also measure decoding without a loader, for comparison");
              },
          .run = [flags](Invocation& invocation) { return run(invocation, *flags); }};
}

}  // namespace renkei::cli
