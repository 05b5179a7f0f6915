#pragma once

#include <string>
#include <vector>

#include "capture/json_reading.h"

namespace renkei::capture {

// The names of a program's results, from the shape of what forward() returned: the keys of a
// dictionary ("logits"), positions in tuples ("output_0"), both joined ("past.0"). One per leaf;
// empty: nothing is known.
std::vector<std::string> output_names(const json& graph_module);

}  // namespace renkei::capture
