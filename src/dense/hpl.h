// The user's own HPL (xhpl) as another engine: its input file, its program, its words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dense/linpack.h"

namespace renkei::dense {

// HPL.dat for one run. What ScaLAPACK has no counterpart of is set as HPL's authors advise: right
// looking recursive panels, one look-ahead, modified increasing ring.
std::string hpl_input(const LinpackOptions& options);

// The result line and the verdict in what xhpl printed; empty where one of them is missing.
std::optional<LinpackResult> parse_hpl_output(const std::string& output);

// Runs `command` (a launcher and xhpl) in a directory of its own. A usage Error with the last words
// of the program when it fails or has no result.
LinpackResult run_hpl(const std::vector<std::string>& command, const LinpackOptions& options);

}  // namespace renkei::dense
