// Finds and opens renkei_onednn.so, the module with all that calls oneDNN (onednn/interface.h).
#pragma once

#include <filesystem>
#include <vector>

#include "compute/onednn/interface.h"

namespace renkei::compute::onednn {

// Opened at the first call. An Error where it is not found, cannot be opened, or needs a newer
// processor; the next call tries again.
const Module& module();

// Where it is looked for, in this order: beside the program, or the library that this is part of;
// in
// ../lib/renkei of these; where it was built.
std::vector<std::filesystem::path> module_places();

// Opens the first of these files that is there; what module() does with module_places().
const Module& open_module(const std::vector<std::filesystem::path>& places);

}  // namespace renkei::compute::onednn
