#pragma once

#include <span>
#include <vector>

#include "data/source/source.h"

namespace renkei::data {

// One read that serves several samples.
struct ReadRun {
  Location where;
  std::vector<size_t> members;  // indices of the locations in it, by offset
};

// Puts neighbours together, with gaps of up to `gap_bytes`, in runs of up to `most_bytes`; in the
// order of files and offsets. Locations without a file are left out.
std::vector<ReadRun> plan_reads(std::span<const Location> locations, int64_t gap_bytes,
                                int64_t most_bytes);

}  // namespace renkei::data
