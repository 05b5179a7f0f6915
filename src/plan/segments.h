// Where a stage that recomputes keeps values. Forward keeps nothing but what came in and what
// crosses from one segment to the next; backward goes from the last segment to the first, computes
// each again from what came into it, and holds what that saves for as long. All is computed twice,
// whatever the segments, so only memory decides:
//
//   whole × (bytes that cross between segments)  +  the most that a segment saves
//
// for `whole` micro-batches in flight. For a bound on the second, the least of the first is a
// shortest path over the cuts; the bound falls until what crosses alone is more than the best.
// (Chen et al., Training deep nets with sublinear memory cost, 2016.)
#pragma once

#include <vector>

#include "graph/cuts.h"

namespace renkei::plan {

struct Segments {
  std::vector<size_t> cuts;  // between the segments; none: the stage is one
  double kept_bytes = 0;     // that cross them, of a micro-batch
  double saved_bytes = 0;    // by the segment that saves the most

  double bytes(int whole) const { return whole * kept_bytes + saved_bytes; }
};

Segments cheapest_segments(const graph::Cuts& cuts, size_t from, size_t to, double samples,
                           int whole);

// Those that a plan has: of the whole network the cheapest, of a stage of a pipeline one. The
// search asks for thousands of stages, and a pipeline has made them small already.
Segments planned_segments(const graph::Cuts& cuts, size_t from, size_t to, double samples,
                          int whole);

}  // namespace renkei::plan
