// The links between some of the ranks, all pairs of them, in rounds in which no rank is in two
// pairs: the round-robin of tournaments, in which all but one place rotate. With n ranks, n - 1
// rounds (n when n is odd), so the time grows with n and not with its square.
#pragma once

#include <utility>
#include <vector>

#include "comm/transport/transport.h"

namespace renkei::check {

struct Link {
  int a = 0, b = 0;  // ranks, a < b
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// rounds()[r] has the pairs (i < j) of round r of n places; each pair comes once.
std::vector<std::vector<std::pair<int, int>>> conflict_free_rounds(int n);

// All ranks of the job call it together; those that are not in `ranks` only wait, asleep. Rank 0
// gets all links, the others nothing.
std::vector<Link> measure_links(comm::Transport& transport, const std::vector<int>& ranks,
                                double seconds_per_link);

// Waits until all ranks are here without taking a core from those that still measure.
void quiet_barrier(comm::Transport& transport);

}  // namespace renkei::check
