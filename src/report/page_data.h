// The data of the page, as JSON. web/source/data.ts is the same schema for TypeScript.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "report/run_report.h"

namespace renkei::report {

// The tables, which --format json gives; the contract's fields among them.
nlohmann::json tables_of(const RunReport& run);

// All that the page draws: the tables, and curves, steps and slices, thinned out where there are
// more than a screen can show.
nlohmann::json page_data(std::span<const RunReport> runs);

// The page: one HTML file that needs nothing else.
std::string page_of(std::span<const RunReport> runs);

std::string markdown_of(std::span<const RunReport> runs);
std::string csv_of(std::span<const RunReport> runs);

}  // namespace renkei::report
