// How fast are the collectives, and how fast could they be? Ours, the bound and the peers' are
// timed interleaved in the same processes (contest.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/peers.h"

namespace renkei::bench {

struct CollectivesOptions {
  comm::Collective collective = comm::Collective::allreduce;
  comm::DType dtype = comm::DType::f32;
  std::vector<int64_t> sizes_bytes;
  int rounds = 7;
  bool peers = false;  // for an allreduce of f32 only
  double timeout_seconds = 300;
};

// The number of elements for a size: at least one for each rank, and the same for all of them where
// the collective wants that.
size_t count_for(const CollectivesOptions& options, int64_t size_bytes, int ranks);

// One line of the table: ours on one kind of buffer at one size.
struct CollectivesRow {
  std::string buffers;  // of collective_case.h
  int64_t size_bytes = 0;
  int64_t count = 0;
  std::string algorithm;
  bool in_place = true;                 // all_to_all is not
  double time_us = 0, p99_us = 0;       // in place, where there is such a form
  std::optional<double> from_other_us;  // with a copy of the input first, where `in_place`
  double algorithm_gbs = 0;             // bytes of the buffer per second
  double bus_gbs = 0;                   // comparable between collectives and numbers of ranks
  int64_t wrong = 0;    // elements that differ from the exact result, over all ranks
  double bound_us = 0;  // see memory_bound.h
  std::vector<std::pair<std::string, double>> peers_us;
};

// Called by all ranks; all get the same rows. `progress` hears of each row.
std::vector<CollectivesRow> measure_collectives(
    comm::Communicator& communicator, const CollectivesOptions& options,
    const std::function<void(const CollectivesRow&)>& progress);

}  // namespace renkei::bench
