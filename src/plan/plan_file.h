// The plan file: what `renkei plan` writes and `renkei train --plan` reads. People may change it,
// so it is checked.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "graph/graph.h"
#include "plan/objective.h"
#include "plan/plan.h"

namespace renkei::plan {

// The plan of a layout.
Plan make_plan(const Objective& objective, const Evaluated& evaluated);

// Throws a data Error that names the place: a version, a schedule or a key that is not known, a
// stage without ops or ranks, an op or a rank that is there twice, fields that contradict another.
Plan plan_from_json(const nlohmann::json& json, const std::string& source);
Plan load_plan(const std::filesystem::path& file);
void save_plan(const Plan& plan, const std::filesystem::path& file);

// Whether a plan belongs to a graph: a data Error when an op is missing, or unknown, or needs a
// value of a later stage.
void check_against(const Plan& plan, const graph::Graph& graph, const std::string& source);
// Whether its ranks are those that are there, no more and no fewer: a usage Error.
void check_ranks(const Plan& plan, int ranks, const std::string& source);

}  // namespace renkei::plan
