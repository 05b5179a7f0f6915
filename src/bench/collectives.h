// How fast are the collectives, and how fast could they be? Every contestant (ours, the peers') is
// timed in the same processes, one after the other, round after round: on a shared machine only
// what ran in the same second can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/peers.h"

namespace renkei::bench {

struct CollectivesOptions {
  std::vector<int64_t> sizes_bytes;
  int rounds = 7;
  bool peers = false;
  comm::Reduction reduction = comm::Reduction::sum;
};

// One line of the table: ours on one kind of buffer at one size.
struct CollectivesRow {
  std::string buffers;  // "shared": from Communicator::allocate, as training uses it; "private"
  int64_t size_bytes = 0;
  int64_t count = 0;
  std::string algorithm;
  double in_place_us = 0, in_place_p99_us = 0;
  double out_of_place_us = 0;
  double algorithm_gbs = 0;  // bytes of the buffer per second
  double bus_gbs = 0;        // that × 2 (n-1)/n: comparable between numbers of ranks
  int64_t wrong = 0;         // elements that differ from the exact sum, over all ranks
  double bound_us = 0;       // the same reads and writes on memory of one's own, no exchange
  std::vector<std::pair<std::string, double>> peers_us;
};

// Called by all ranks; all get the same rows. `progress` hears of each row.
std::vector<CollectivesRow> measure_collectives(
    comm::Communicator& communicator, const CollectivesOptions& options,
    const std::function<void(const CollectivesRow&)>& progress);

}  // namespace renkei::bench
