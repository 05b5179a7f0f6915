#include "sim/reading.h"

#include <algorithm>

namespace renkei::sim {
namespace {

// Of the memory of a node, what training itself needs is not free for files.
constexpr double kPageCacheShare = 0.8;
// Requests that a loader has under way at once; what an open costs is divided among them.
constexpr double kConcurrentOpens = 16;

}  // namespace

Reading read_step(const cluster::Description& machine, const DataSet& data, double samples_per_node,
                  double step_seconds, bool first_epoch) {
  Reading reading;
  const double bytes = samples_per_node * data.sample_bytes;
  if (bytes <= 0) return reading;
  reading.needed_bytes_per_second = bytes / step_seconds;
  const double memory = kPageCacheShare * static_cast<double>(machine.nodes.front().memory_bytes);
  if (!first_epoch && data.bytes > 0) reading.cached_share = std::min(1.0, memory / data.bytes);
  if (machine.storage.read_bytes_per_second <= 0) return reading;
  const double missed = 1 - reading.cached_share;
  reading.seconds = missed * bytes / machine.storage.read_bytes_per_second;
  if (data.file_per_sample)
    reading.seconds += missed * samples_per_node * machine.storage.open_seconds / kConcurrentOpens;
  return reading;
}

}  // namespace renkei::sim
