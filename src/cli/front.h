// The program that users start, in front of those with heavy libraries.
//
// Loading LibTorch takes most of a second, and OpenBLAS starts a thread for every core when it is
// loaded and must not meet Torch's own BLAS in one process. So `renkei` is linked without both and
// does what it can by itself: data sets, networks, plans, collectives. For the rest it becomes one
// of two programs that lie beside it: `renkei-blas`, which measures machines, or `renkei-torch`.
#pragma once

#include <string>
#include <vector>

namespace renkei::cli {

bool needs_blas(const std::vector<std::string>& arguments);
bool needs_torch(const std::vector<std::string>& arguments);

// Does not return; an Error where that program can't be started.
[[noreturn]] void become_program(const std::string& name, char** argv);

}  // namespace renkei::cli
