// The program that users start, in front of the one with Torch.
//
// Loading LibTorch takes most of a second. So `renkei` is linked without it and does what it can by
// itself: data sets, networks, plans, collectives. For all else it becomes `renkei-torch`,
// which lies beside it and has every command.
#pragma once

#include <string>
#include <vector>

namespace renkei::cli {

bool needs_torch(const std::vector<std::string>& arguments);

// Does not return; an Error where that program can't be started.
[[noreturn]] void become_torch_program(char** argv);

}  // namespace renkei::cli
