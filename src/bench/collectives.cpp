#include "bench/collectives.h"

#include <algorithm>
#include <memory>

#include "bench/collective_case.h"
#include "bench/contest.h"
#include "bench/memory_bound.h"

namespace renkei::bench {

using comm::Buffer;
using comm::Communicator;

size_t count_for(const CollectivesOptions& options, int64_t size_bytes, int ranks) {
  const auto n = static_cast<size_t>(ranks);
  const size_t count = static_cast<size_t>(size_bytes) / comm::size_of(options.dtype);
  if (options.collective == comm::Collective::allreduce ||
      options.collective == comm::Collective::broadcast)
    return std::max<size_t>(count, 1);
  return std::max(count / n, size_t{1}) * n;
}

std::vector<CollectivesRow> measure_collectives(
    Communicator& communicator, const CollectivesOptions& options,
    const std::function<void(const CollectivesRow&)>& progress) {
  const int ranks = communicator.transport().size();
  const comm::Call call{.operation = "benchmark", .timeout_seconds = options.timeout_seconds};
  const size_t most = count_for(options, *std::ranges::max_element(options.sizes_bytes), ranks);
  const Buffer shared = communicator.allocate(most, options.dtype);
  std::vector<std::byte> own(most * comm::size_of(options.dtype)), other(own.size());
  MemoryBound bound(options.collective, options.dtype, ranks, most);
  std::vector<std::unique_ptr<comm::Peer>> peers;
  if (options.peers && ranks > 1) peers = comm::make_mpi_peers();

  std::vector<CollectivesRow> rows;
  for (const int64_t size : options.sizes_bytes)
    for (const Buffers buffers : {Buffers::once, Buffers::shared, Buffers::privates}) {
      const size_t count = count_for(options, size, ranks);
      const Buffer buffer(buffers == Buffers::privates ? own.data() : shared.data, count,
                          options.dtype);
      if (!CollectiveCase::exists(communicator, options.collective, buffers, buffer)) continue;
      CollectiveCase subject(communicator, options.collective, buffers, buffer,
                             {other.data(), count, options.dtype}, call);
      CollectivesRow row{.buffers = std::string(name_of(buffers)),
                         .size_bytes = static_cast<int64_t>(buffer.bytes()),
                         .count = static_cast<int64_t>(count),
                         .algorithm = communicator.choice(options.collective, buffer),
                         .in_place = subject.has_in_place(),
                         .wrong = subject.count_wrong()};
      std::vector<Contestant> contestants{{"ours", [&] { subject.run(); }},
                                          {"bound", [&] { bound.run(count, buffers); }}};
      if (row.in_place)
        contestants.push_back({"ours from another buffer", [&] { subject.run_from_other(); }});
      const size_t first_peer = contestants.size();
      // Peers know private memory only, so they are the same for both kinds of buffers of ours.
      for (auto& peer : peers)
        contestants.push_back({peer->name(), [&] {
                                 peer->allreduce({reinterpret_cast<float*>(own.data()), count});
                               }});
      time_interleaved(communicator, contestants, options.rounds, call);

      row.time_us = contestants[0].median_us();
      row.p99_us = contestants[0].quantile_us(0.99);
      row.bound_us = contestants[1].median_us();
      if (row.in_place) row.from_other_us = contestants[2].median_us();
      row.algorithm_gbs = static_cast<double>(row.size_bytes) / row.time_us / 1e3;
      row.bus_gbs = row.algorithm_gbs * subject.bus_factor();
      for (size_t c = first_peer; c < contestants.size(); ++c)
        row.peers_us.emplace_back(contestants[c].name, contestants[c].median_us());
      progress(row);
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace renkei::bench
