// TensorFlow on TSUBAME 3.0 (University of Electro-Communications): four networks, one node with
// four P100, data sets from well below to well above its 256 GB of memory.
#include <fmt/format.h>

#include <algorithm>

#include "cluster/description.h"
#include "sim/scaling.h"
#include "study/study.h"

namespace renkei::study {
namespace {

constexpr double kImages = 1'281'167, kDataSetBytes = 147.5e9, kEpochs = 10;
constexpr double kSizes[] = {73.8e9, 147.5e9, 295.1e9, 590.2e9};
constexpr int kDevices = 4;
constexpr int64_t kBatch = 256;

struct Network {
  const char* model;
  const char* title;
  double p100, v100;  // images/s of one device, measured by others
};
constexpr Network kNetworks[] = {{"resnet50", "ResNet-50", 219, 405},
                                 {"inception_v3", "Inception-v3", 142, 259},
                                 {"vgg16", "VGG16", 154, 249},
                                 {"alexnet", "AlexNet", 2987, 5132}};

struct Device {
  const char* name;
  double of_v100;  // how many times its rate; 0: measured
};
constexpr Device kLater[] = {{"A100", 1555.0 / 900}, {"H100", 3350.0 / 900}};

sim::Scenario scenario_of(const GraphOf& graph_of, const cluster::Description& machine,
                          const Network& network) {
  sim::Scenario scenario{.graph = graph_of(network.model, {}), .machine = machine};
  scenario.batch_per_device = kBatch / kDevices;
  scenario.device_samples_per_second = network.p100;
  scenario.step.reduction = {.detail = sim::Detail::flows};
  scenario.data.sample_bytes = kDataSetBytes / kImages;
  return scenario;
}

double training_seconds(sim::Scenario scenario, double bytes) {
  scenario.data.bytes = bytes;
  const double images = bytes / scenario.data.sample_bytes;
  const sim::ScalingRow row = simulate_on(scenario, kDevices);
  // Nothing is in memory in the first epoch.
  const sim::Reading first = read_step(scenario.machine, scenario.data, static_cast<double>(kBatch),
                                       row.step.seconds, /*first_epoch=*/true);
  const double steps = images / static_cast<double>(kBatch);
  return steps * (std::max(row.step.seconds, first.seconds) + (kEpochs - 1) * row.step_seconds);
}

void add_sizes(Study& study, const GraphOf& graph_of, const cluster::Description& machine) {
  Plot plot{.name = "tsubame3-sizes",
            .title = "10 epochs on 4 P100 (Figure 1); memory is 256 GB",
            .x_label = "data set, GB",
            .y_label = "hours"};
  for (const Network& network : kNetworks) {
    const sim::Scenario scenario = scenario_of(graph_of, machine, network);
    Curve curve{network.title, {}};
    for (const double bytes : kSizes) {
      const double seconds = training_seconds(scenario, bytes);
      curve.points.emplace_back(bytes / 1e9, seconds / 3600);
      study.rows.push_back(
          {.what = fmt::format("{}, 10 epochs of {:.1f} GB", network.title, bytes / 1e9),
           .unit = "h",
           .simulated = seconds / 3600});
    }
    const double growth = curve.points.back().second / curve.points.front().second;
    study.rows.push_back({.what = fmt::format("{}: 590.2 GB against 73.8 GB", network.title),
                          .unit = "x",
                          .published = kSizes[3] / kSizes[0],  // "in proportion"
                          .simulated = growth});
    plot.curves.push_back(std::move(curve));
  }
  study.plots.push_back(std::move(plot));
}

void add_needs(Study& study, const cluster::Description& machine) {
  const double image = kDataSetBytes / kImages;
  const double storage = machine.storage.read_bytes_per_second;
  Plot plot{.name = "tsubame3-needs",
            .title = "What 4 devices must read (line: the node's Lustre)",
            .x_label = "device: 1 P100, 2 V100, 3 A100, 4 H100",
            .y_label = "GB/s"};
  std::string limited;
  for (const Network& network : kNetworks) {
    Curve curve{network.title, {}};
    const auto add = [&](const char* device, double rate) {
      const double needed = kDevices * rate * image;
      study.rows.push_back({.what = fmt::format("{} on 4 {}: reads", network.title, device),
                            .unit = "GB/s",
                            .simulated = needed / 1e9});
      curve.points.emplace_back(static_cast<double>(curve.points.size() + 1), needed / 1e9);
      if (needed > storage)
        limited += fmt::format("{}{} on {}", limited.empty() ? "" : ", ", network.title, device);
    };
    add("P100", network.p100);
    add("V100", network.v100);
    for (const Device& device : kLater) add(device.name, device.of_v100 * network.v100);
    plot.curves.push_back(std::move(curve));
  }
  plot.curves.push_back({"storage", {{1, storage / 1e9}, {4, storage / 1e9}}});
  study.plots.push_back(std::move(plot));
  study.findings.push_back(
      fmt::format("Training becomes I/O bound where devices need more than the {:.0f} GB/s that a "
                  "node reads and "
                  "the data set is larger than memory: {}.",
                  storage / 1e9, limited.empty() ? "nowhere here" : limited));
}

}  // namespace

Study simulate_tsubame3(const GraphOf& graph_of) {
  const cluster::Description machine = cluster::load_description("tsubame3");
  Study study{.name = "tsubame3", .title = "TensorFlow on TSUBAME 3.0, data sets beyond memory"};
  study.parameters = {
      {"P100, images/s of one", "219, 142, 154, 2987 (ResNet-50, Inception-v3, VGG16, AlexNet)",
       "TensorFlow benchmarks, May 2017, SXM2, batch 64 (AlexNet 512)"},
      {"V100", "405, 259, 249, 5132", "Lambda Labs, 2019, 32 bits"},
      {"A100, H100", "1.73 and 3.7 times a V100", "by their memory's bandwidth: estimated"},
      {"an image", fmt::format("{:.0f} kB", kDataSetBytes / kImages / 1e3),
       "147.5 GB and 1.28 M images, as published"},
      {"storage of a node", fmt::format("{:.0f} GB/s", machine.storage.read_bytes_per_second / 1e9),
       "Lustre: assumed"},
      {"page cache", "80 % of 256 GB", "the rest is in use"}};
  add_sizes(study, graph_of, machine);
  add_needs(study, machine);
  return study;
}

}  // namespace renkei::study
