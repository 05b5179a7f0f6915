// The experiments of three publications again: what was published, what the simulator says with
// nothing but data of the hardware, and what this machine measures at its own scale.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "study/plot.h"

namespace renkei::study {

struct Row {
  std::string what;
  std::string unit = {};  // "s", "%", "images/s"
  std::optional<double> published = {}, simulated = {}, measured = {};

  // Of the simulated, or else the measured value: in points for shares, else relative.
  std::optional<double> error() const;
};

// An assumption, where it comes from.
struct Parameter {
  std::string name, value, source;
};

struct Study {
  std::string name, title;
  std::vector<Parameter> parameters = {};
  std::vector<Row> rows = {};
  std::vector<std::string> findings = {};  // sentences
  std::vector<Plot> plots = {};
};

// The graph of a network, its work counted; a setting may be given for it.
using GraphOf = std::function<graph::Graph(
    const std::string& model, const std::vector<std::pair<std::string, std::string>>& settings)>;

Study simulate_flow(const GraphOf& graph_of);
Study simulate_mn1(const GraphOf& graph_of);
Study simulate_tsubame3(const GraphOf& graph_of);

}  // namespace renkei::study
