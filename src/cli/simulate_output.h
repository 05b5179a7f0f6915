#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/scaling.h"

namespace renkei::cli {

// What `renkei simulate` has found, for people and for programs.
struct SimulationReport {
  const sim::Scenario& scenario;
  std::vector<sim::ScalingRow> rows;
  std::vector<sim::Gain> gains;  // of the last row, where asked for
  double simulation_seconds = 0;
};

std::string simulation_for_people(const SimulationReport& report);
nlohmann::json simulation_for_programs(const SimulationReport& report);

}  // namespace renkei::cli
