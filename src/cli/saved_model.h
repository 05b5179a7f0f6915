// The argument RUN of commands that use saved weights.
#pragma once

#include <filesystem>
#include <string>

#include "cli/command.h"

namespace renkei::cli {

void add_run_argument(Arguments& arguments, std::string& run);

// The settings of the run, for Command::earlier_settings; empty without one.
std::filesystem::path settings_of_run(const std::string& run);

// Its weights become model.weights; a usage Error where neither a run nor weights were named.
void use_weights_of_run(Settings& settings, const std::string& run);

}  // namespace renkei::cli
