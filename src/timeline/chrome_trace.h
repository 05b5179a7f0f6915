// A timeline in the trace format of Chrome, which Perfetto and chrome://tracing show: a process for
// each rank, threads for its lanes, slices for tasks within slices for steps, arrows from a send to
// its receive, counters for throughput and memory.
//
// Perfetto's rules are kept: slices of a thread lie beside or within each other (what overlaps gets
// a thread more), times are whole nanoseconds so that rounding can't break that, and both ends of
// an arrow lie within their slices.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "timeline/rank_file.h"

namespace renkei::timeline {

// Gives the text piece by piece: it may be larger than memory.
void write_chrome_trace(std::span<const RankTimeline> ranks,
                        const std::function<void(std::string_view)>& sink);

// The file appears when it is whole.
void write_chrome_trace(std::span<const RankTimeline> ranks, const std::filesystem::path& file);

}  // namespace renkei::timeline
