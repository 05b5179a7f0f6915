// The graph file: what `renkei plan --graph` reads. docs/plan.md describes it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "graph/graph.h"

namespace renkei::graph {

nlohmann::json to_json(const Graph& graph);

// Checked and sorted. Throws a data Error that names the place; `source` begins the message.
Graph graph_from_json(const nlohmann::json& json, const std::string& source);

void save_graph(const Graph& graph, const std::filesystem::path& file);
Graph load_graph(const std::filesystem::path& file);

}  // namespace renkei::graph
