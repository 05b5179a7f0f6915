// What `bench collectives` prints: tables for people, JSON and CSV for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/collectives.h"
#include "bench/explain.h"

namespace renkei::cli {

std::string table_of(const std::vector<bench::CollectivesRow>& rows,
                     const bench::CollectivesOptions& options, int ranks);
std::string csv_of(const std::vector<bench::CollectivesRow>& rows,
                   const bench::CollectivesOptions& options);
// The array of rows.
nlohmann::json json_of(const std::vector<bench::CollectivesRow>& rows,
                       const bench::CollectivesOptions& options);

std::string table_of(const bench::Explanation& explanation,
                     const bench::CollectivesOptions& options, int ranks);
nlohmann::json json_of(const bench::Explanation& explanation,
                       const bench::CollectivesOptions& options);

}  // namespace renkei::cli
