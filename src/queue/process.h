#pragma once

#include <string>
#include <vector>

namespace renkei::queue {

struct Output {
  int exit_code = 0;  // 127: no such program
  std::string text;   // stdout and stderr
};

// Runs a program of the queue, with a text as its input.
Output ask(const std::vector<std::string>& command, const std::string& input = "");

}  // namespace renkei::queue
