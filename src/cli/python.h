// Commands that are Python programs run with the Python that Renkei was built with, or that
// RENKEI_PYTHON names.
#pragma once

#include <string>
#include <vector>

namespace renkei::cli {

std::string find_python();

// Does not return; an Error where it can't be started.
[[noreturn]] void become_python(std::vector<std::string> words);

}  // namespace renkei::cli
