// A timeline in the trace format of Chrome, which Perfetto and chrome://tracing show.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "timeline/recorder.h"

namespace renkei::timeline {

// The events of one rank, times relative to `origin`: lines of the array "traceEvents".
std::string trace_events(std::span<const Event> events, int rank, const std::string& host,
                         double origin);

// The whole file, from the events of all ranks.
std::string chrome_trace(const std::vector<std::string>& events_of_ranks);

}  // namespace renkei::timeline
