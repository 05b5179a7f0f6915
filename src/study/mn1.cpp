// MN-1 (Preferred Networks, 2017): the spread of its cards, LINPACK, and ResNet-50 on up to 1,024.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cluster/description.h"
#include "sim/scaling.h"
#include "study/linpack_model.h"
#include "study/study.h"

namespace renkei::study {
namespace {

constexpr double kPublishedTrainingSeconds = 15 * 60;
constexpr double kPublishedEfficiency = 80;
constexpr double kValidationImages = 50'000;
constexpr double kPublishedNode = 72, kPublishedAll = 28;  // LINPACK, per cent of the peak
constexpr double kDgemmPeak = 4.7e12;

sim::Scenario scenario_of(const GraphOf& graph_of, const cluster::Description& machine) {
  sim::Scenario scenario{.graph = graph_of(machine.run.model, {}), .machine = machine};
  scenario.batch_per_device = machine.run.batch_per_device;
  scenario.device_samples_per_second = machine.run.device_samples_per_second;
  scenario.training_samples = machine.run.samples * machine.run.epochs;
  scenario.step.reduction = {.detail = sim::Detail::rounds,
                             .algorithm = comm::Algorithm::ring,
                             .bytes_factor = 0.5,
                             .overlap = false};
  return scenario;
}

Curve step_curve(const std::string& name, const std::vector<sim::ScalingRow>& rows) {
  Curve curve{name, {}};
  for (const sim::ScalingRow& row : rows)
    curve.points.emplace_back(row.devices, 1e3 * row.step_seconds);
  return curve;
}

// The first number of devices whose step is more than 3 % longer than that of half as many, both
// on several nodes.
int knee(const std::vector<sim::ScalingRow>& rows, int node) {
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i - 1].devices > node && rows[i].step_seconds > 1.03 * rows[i - 1].step_seconds)
      return rows[i].devices;
  return 0;
}

void add_training(Study& study, const GraphOf& graph_of, const cluster::Description& machine) {
  const std::vector<int> counts{8, 16, 32, 64, 128, 256, 512, 1024};
  const sim::Scenario scenario = scenario_of(graph_of, machine);
  const auto rows = simulate_scaling(scenario, counts);
  Curve communication{"of it communication", {}};
  for (const sim::ScalingRow& row : rows) {
    communication.points.emplace_back(row.devices, 1e3 * row.step.parts.communication);
    study.rows.push_back({.what = fmt::format("ResNet-50 step on {} GPUs", row.devices),
                          .unit = "ms",
                          .simulated = 1e3 * row.step_seconds});
    study.rows.push_back({.what = fmt::format("  of it communication on {}", row.devices),
                          .unit = "ms",
                          .simulated = 1e3 * row.step.parts.communication});
  }
  const sim::ScalingRow& all = rows.back();
  study.rows.push_back({.what = "scaling efficiency on 1,024 GPUs",
                        .unit = "%",
                        .published = kPublishedEfficiency,
                        .simulated = 100 * all.efficiency});
  // Validation after each epoch: forward is a third of the computation.
  const double batches = std::ceil(kValidationImages / static_cast<double>(all.batch));
  const double validation = machine.run.epochs * batches * all.step.parts.compute / 3;
  study.rows.push_back({.what = "90 epochs on 1,024 GPUs, with validation",
                        .unit = "s",
                        .published = kPublishedTrainingSeconds,
                        .simulated = all.training.seconds + validation});
  const int turn = knee(rows, 8);
  study.findings.push_back(
      turn == 512 ? "The step grows noticeably (3 % for a doubling) from 512 GPUs on, as published."
                  : fmt::format("The step grows by 3 % for a doubling from {} GPUs on; published: "
                                "512.",
                                turn));

  const auto variant = [&](const std::string& name, auto change) {
    sim::Scenario other = scenario;
    change(other.step.reduction);
    const auto changed = simulate_scaling(other, counts);
    study.rows.push_back({.what = "step on 1,024 GPUs: " + name,
                          .unit = "ms",
                          .simulated = 1e3 * changed.back().step_seconds});
    return step_curve(name, changed);
  };
  Plot variants{.name = "mn1-variants",
                .title = "ResNet-50, 32 images on each GPU: what if",
                .x_label = "GPUs",
                .y_label = "ms for a step",
                .logarithmic_x = true};
  variants.curves = {
      step_curve("ring, 16 bits on the wire (as published)", rows),
      variant("ring, 32 bits on the wire", [](auto& reduction) { reduction.bytes_factor = 1; }),
      variant("torus", [](auto& reduction) { reduction.algorithm = comm::Algorithm::torus; }),
      variant("hierarchical",
              [](auto& reduction) { reduction.algorithm = comm::Algorithm::hierarchical; }),
      variant("hierarchical, while backward computes",
              [](auto& reduction) {
                reduction.algorithm = comm::Algorithm::hierarchical;
                reduction.overlap = true;
              }),
      variant("ring with messages under way at once",
              [](auto& reduction) { reduction.detail = sim::Detail::flows; })};
  sim::Scenario bad = scenario;
  for (int device = 0; device < 8; ++device)
    for (int node = 0; node < 128; ++node)
      bad.step.reduction.ring_order.push_back(node * 8 + device);
  study.rows.push_back({.what = "step on 1,024 GPUs: ring in a bad order (node after node)",
                        .unit = "ms",
                        .simulated = 1e3 * simulate_on(bad, 1024).step_seconds});
  study.plots.push_back({.name = "mn1-scaling",
                         .title = "ResNet-50 on MN-1, 32 images on each GPU (Figure 4)",
                         .x_label = "GPUs",
                         .y_label = "ms for a step",
                         .logarithmic_x = true,
                         .curves = {step_curve("step", rows), communication}});
  study.plots.push_back(std::move(variants));
}

std::vector<double> slownesses(const cluster::Description& machine, int devices) {
  std::vector<double> all;
  const auto places = cluster::places(machine, devices);
  for (int device = 0; device < devices; ++device)
    all.push_back(sim::slowness(machine, places[static_cast<size_t>(device)], device, 0));
  return all;
}

void add_cards(Study& study, const cluster::Description& machine) {
  std::vector<double> gflops;
  for (const double slow : slownesses(machine, 1024))
    gflops.push_back(0.9 * kDgemmPeak / slow / 1e9);
  std::ranges::sort(gflops, std::greater<>());
  Curve curve{"DGEMM", {}};
  for (size_t i = 0; i < gflops.size(); ++i)
    curve.points.emplace_back(static_cast<double>(i + 1), gflops[i]);
  study.rows.push_back({.what = "DGEMM: the slowest card, of the fastest",
                        .unit = "%",
                        .simulated = 100 * gflops.back() / gflops.front()});
  study.plots.push_back({.name = "mn1-cards",
                         .title = "1,024 cards by their DGEMM (Figure 3)",
                         .x_label = "card",
                         .y_label = "GFLOP/s",
                         .curves = {curve}});
}

void add_linpack(Study& study, const cluster::Description& machine) {
  Curve curve{"look-ahead hides panels", {}}, exposed{"nothing hides", {}};
  const struct {
    int p, q;
    std::optional<double> published;
  } grids[] = {
      {1, 1, {}}, {2, 4, kPublishedNode}, {8, 8, {}}, {16, 16, {}}, {32, 32, kPublishedAll}};
  for (const auto& [p, q, published] : grids) {
    const double slowest = std::ranges::max(slownesses(machine, p * q));
    const LinpackTime time = linpack_time(machine, {.p = p, .q = q, .slowest = slowest});
    curve.points.emplace_back(p * q, 100 * time.efficiency);
    exposed.points.emplace_back(p * q, 100 * time.efficiency_exposed);
    study.rows.push_back({.what = fmt::format("LINPACK on {} GPUs ({} x {})", p * q, p, q),
                          .unit = "%",
                          .published = published,
                          .simulated = 100 * time.efficiency});
    if (p == 32) {
      study.rows.push_back({.what = "  with nothing hidden behind products",
                            .unit = "%",
                            .published = published,
                            .simulated = 100 * time.efficiency_exposed});
      study.findings.push_back(fmt::format(
          "LINPACK on 1,024 GPUs: products take {:.0f} s, panels {:.0f} s, their broadcast {:.0f} "
          "s, swaps of rows {:.0f} s, copies to the cards {:.0f} s of {:.0f} s.",
          time.update, time.panel, time.broadcast, time.swap, time.copy, time.seconds));
    }
  }
  study.plots.push_back({.name = "mn1-linpack",
                         .title = "LINPACK on MN-1",
                         .x_label = "GPUs",
                         .y_label = "% of the peak",
                         .logarithmic_x = true,
                         .curves = {curve, exposed}});
}

}  // namespace

Study simulate_mn1(const GraphOf& graph_of) {
  const cluster::Description machine = cluster::load_description("mn1");
  const cluster::Interconnect& net = machine.interconnect;
  Study study{.name = "mn1", .title = "MN-1, 1,024 P100 (Preferred Networks, 2017)"};
  study.parameters = {
      {"ResNet-50 on one GPU", fmt::format("{} images/s", machine.run.device_samples_per_second),
       "TensorFlow benchmarks, May 2017, P100 SXM2, batch 32: 195; PCIe has 9.3/10.6 of its clock"},
      {"link of a GPU", fmt::format("{} GB/s", machine.nodes[0].link.bytes_per_second / 1e9),
       "PCIe 3.0 x16, as measured on such cards"},
      {"links of a node",
       fmt::format("{} GB/s over {} adapters", net.link.bytes_per_second / 1e9, net.adapters),
       "2 x FDR, less encoding and protocol"},
      {"latency of a step",
       fmt::format("{:.3g} us in a node, {:.3g} us between nodes",
                   1e6 * machine.nodes[0].link.latency_seconds, 1e6 * net.link.latency_seconds),
       "what NCCL counts with for its ring (src/graph/tuning.cc, Simple)"},
      {"links of a group", fmt::format("{} GB/s", net.uplink.bytes_per_second / 1e9),
       "half of what its nodes could send: assumed"},
      {"spread of the cards", fmt::format("{} %", 100 * machine.kinds[0].spread),
       "a range of 8 % among equal GPUs (Sinha et al., SC 2022)"},
      {"allreduce", "ring, all steps in lock step, 16 bits, after backward",
       "as published; NCCL 2.0 has two buffers for each link"},
      {"LINPACK", "blocks of 384, 80 % of the cards' memory, products at 90 % of 4.7 TFLOP/s",
       "usual for these cards"}};
  add_training(study, graph_of, machine);
  add_cards(study, machine);
  add_linpack(study, machine);
  return study;
}

}  // namespace renkei::study
