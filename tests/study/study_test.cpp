#include "study/study.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "study/linpack_model.h"

namespace renkei::study {
namespace {

const Row& row(const Study& study, const std::string& what) {
  for (const Row& candidate : study.rows)
    if (candidate.what == what) return candidate;
  throw Error(ErrorCode::bug, "the study has no row " + what);
}

// A chain with as many parameters and as much time as ResNet-50: networks are tested elsewhere.
graph::Graph like_resnet50(const std::string&,
                           const std::vector<std::pair<std::string, std::string>>&) {
  graph::Graph graph{.name = "resnet50", .batch = 32};
  for (int i = 0; i <= 50; ++i)
    graph.values.push_back({.id = std::to_string(i), .bytes = 1 << 20, .gradient = i > 0});
  for (int i = 0; i < 50; ++i) {
    graph.parameters.push_back({.id = std::to_string(i), .bytes = 25'557'032 * 4 / 50});
    graph.ops.push_back({.id = std::to_string(i),
                         .inputs = {i},
                         .outputs = {i + 1},
                         .parameters = {i},
                         .forward_seconds = 1e-3,
                         .backward_seconds = 2e-3});
  }
  graph.inputs = {0};
  graph.outputs = {50};
  return graph;
}

TEST(Mn1, AgreesWithWhatWasPublished) {
  const Study study = simulate_mn1(like_resnet50);
  EXPECT_NEAR(*row(study, "scaling efficiency on 1,024 GPUs").error(), 0, 5);
  EXPECT_NEAR(*row(study, "90 epochs on 1,024 GPUs, with validation").error(), 0, 0.1);
  EXPECT_NE(study.findings.front().find("from 512 GPUs on, as published"), std::string::npos);
  const auto step = [&](const std::string& variant) {
    return *row(study, "step on 1,024 GPUs: " + variant).simulated;
  };
  const double ring = *row(study, "ResNet-50 step on 1024 GPUs").simulated;
  EXPECT_LT(step("torus"), ring);
  EXPECT_LT(step("hierarchical, while backward computes"), step("hierarchical"));
  EXPECT_GT(step("ring, 32 bits on the wire"), ring);
  EXPECT_GT(step("ring in a bad order (node after node)"), step("ring, 32 bits on the wire"));
  for (const Plot& plot : study.plots) EXPECT_TRUE(svg(plot).ends_with("</svg>\n"));
}

// Ten layers of 512 × 512 with ReLU, their work counted as for a sample.
graph::Graph like_mlp(const std::string&, const std::vector<std::pair<std::string, std::string>>&) {
  graph::Graph graph{.name = "mlp", .batch = 1, .estimated = true};
  for (int i = 0; i <= 20; ++i)
    graph.values.push_back({.id = std::to_string(i), .bytes = 2048, .gradient = i > 0});
  for (int i = 0; i < 20; ++i) {
    const bool linear = i % 2 == 0;
    if (linear) graph.parameters.push_back({.id = std::to_string(i), .bytes = 512 * 513 * 4});
    graph.ops.push_back({.id = std::to_string(i), .inputs = {i}, .outputs = {i + 1}});
    if (linear) graph.ops.back().parameters = {i / 2};
    graph.ops.back().flops = linear ? 2 * 512 * 512 : 512;
    graph.ops.back().traffic_bytes = 4096;
  }
  graph.inputs = {0};
  graph.outputs = {20};
  return graph;
}

TEST(Flow, SixteenAreSlowerThanFourBecauseSumsLeaveTheNode) {
  const Study study = simulate_flow(like_mlp);
  EXPECT_NE(study.findings[0].find("(as published)"), std::string::npos) << study.findings[0];
}

TEST(Tsubame3, TimeIsInProportionToTheDataSetAndFastDevicesReadMoreThanThereIs) {
  const Study study = simulate_tsubame3(like_resnet50);
  for (const char* network : {"ResNet-50", "Inception-v3", "VGG16", "AlexNet"})
    EXPECT_NEAR(*row(study, std::string(network) + ": 590.2 GB against 73.8 GB").error(), 0, 0.02);
  EXPECT_LT(*row(study, "ResNet-50 on 4 P100: reads").simulated, 2);
  EXPECT_GT(*row(study, "AlexNet on 4 H100: reads").simulated, 2);
}

TEST(Linpack, IsProductsAloneWhereLinksAreFast) {
  cluster::Description machine = cluster::load_description("mn1");
  machine.interconnect.link = {0, 1e18};
  machine.interconnect.uplink = {0, 1e18};
  machine.nodes[0].link = {0, 1e18};
  const LinpackTime time = linpack_time(machine, {.p = 8, .q = 8, .node_flops_per_second = 1e18});
  EXPECT_NEAR(time.efficiency, 0.9, 0.01);
}

TEST(Rows, ErrorsOfSharesAreInPoints) {
  EXPECT_NEAR(*(Row{.unit = "%", .published = 80, .simulated = 77}).error(), -3, 1e-12);
  EXPECT_NEAR(*(Row{.unit = "s", .published = 80, .measured = 88}).error(), 0.1, 1e-12);
  EXPECT_FALSE((Row{.unit = "s", .simulated = 1}).error());
}

}  // namespace
}  // namespace renkei::study
