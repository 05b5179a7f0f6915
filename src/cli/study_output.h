#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "study/study.h"

namespace renkei::cli {

std::string study_for_people(const study::Study& study);
nlohmann::json study_for_programs(const study::Study& study);
// A page with the tables and figures in it.
std::string study_page(const study::Study& study);

}  // namespace renkei::cli
