#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace renkei::cli {

// Parses the command line and runs the command. Returns the exit code; throws an Error.
int run_command_line(const std::vector<std::string>& arguments, const Settings& settings,
                     const std::vector<Command>& commands);

}  // namespace renkei::cli
