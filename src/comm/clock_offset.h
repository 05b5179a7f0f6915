// How much later is it on rank 0? Hosts have clocks of their own, and events of several ranks can
// be compared only by one of them.
//
// A rank and rank 0 exchange some messages back and forth. If rank 0 answers "t" to a question that
// was asked at a and answered at b, its clock showed t at some moment between them; the middle is
// wrong by (b - a)/2 at most. The fastest of the exchanges is believed. Cristian, 1989.
#pragma once

#include "base/clock.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

struct ClockDifference {
  double seconds = 0;  // to add to this rank's clock
  double error = 0;    // at most
};

// All ranks together. Ranks on the host of rank 0 have its clock.
ClockDifference clock_difference(Transport& transport, const Clock& clock, const Call& call,
                                 int exchanges = 32);

}  // namespace renkei::comm
