#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace renkei::tune {

struct CommandResult {
  int exit_code = 0;
  std::string output;    // stdout
  bool stopped = false;  // it took too long
};

// Runs a program in a group of processes of its own, which is ended as a whole when it takes longer
// than `seconds`. What it says on stderr is dropped.
CommandResult run_command(const std::vector<std::string>& command, double seconds);

// The words with every {name} replaced by its text.
std::vector<std::string> fill_in(const std::vector<std::string>& words,
                                 const std::map<std::string, std::string>& texts);

// The last number in a text: commands may print words around it.
std::optional<double> last_number(const std::string& text);

}  // namespace renkei::tune
