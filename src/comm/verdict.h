#pragma once

#include "base/error.h"
#include "comm/flight_recorder.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

// Who is to blame for a wait that took too long? A rank knows only the neighbour it waited for,
// which may itself be waiting. So every rank that has run into its deadline tells all others which
// operation it has reached, and listens for `window_seconds`. Ranks that do not answer are stuck
// (stopped, or in something else than communication); when all answer, those that have reached the
// least are behind. Ranks that run into the deadline within the window of each other come to the
// same verdict.
//
// Returns the error to throw in place of `timeout`.
Error find_culprit(Transport& transport, const FlightRecorder& recorder, const Error& timeout,
                   double window_seconds = 4);

}  // namespace renkei::comm
