#include "study/linpack_model.h"

#include <algorithm>
#include <cmath>

#include "comm/allreduce/ring.h"
#include "comm/collectives/exchange.h"
#include "comm/transport/sub_transport.h"
#include "sim/virtual_ranks.h"

namespace renkei::study {
namespace {

using comm::Buffer;
using comm::SubTransport;

// Panels for which messages are simulated; between them, times are a line.
constexpr int kSamples = 9;
constexpr int kChannel = comm::channels::kStaging;

Buffer doubles(double count) {
  return {nullptr, static_cast<size_t>(std::max(1.0, count)), comm::DType::f64};
}

std::vector<int> column_of(int rank, int p) {
  std::vector<int> column;
  for (int row = 0; row < p; ++row) column.push_back(rank / p * p + row);
  return column;
}

// Everyone to the right at once: while one panel goes on, others are on their way elsewhere.
double broadcast_seconds(const sim::Network& network, const LinpackOptions& options,
                         double elements) {
  if (options.q == 1) return 0;
  return sim::seconds_in_rounds(network, [&](sim::VirtualRank& rank) {
    const int ranks = rank.size();
    const Buffer panel = doubles(elements);
    comm::exchange(rank, (rank.rank() + options.p) % ranks, panel.span(),
                   (rank.rank() + ranks - options.p) % ranks, panel.span(), comm::Tag::broadcast,
                   {});
  });
}

double swap_seconds(const sim::Network& network, const LinpackOptions& options, double elements) {
  if (options.p == 1) return 0;
  return sim::seconds_in_rounds(network, [&](sim::VirtualRank& rank) {
    SubTransport column(rank, column_of(rank.rank(), options.p), kChannel);
    double left = elements;
    for (int distance = options.p / 2; distance > 0; distance /= 2) {
      left /= 2;
      const Buffer half = doubles(left);
      const int peer = column.rank() ^ distance;
      comm::exchange(column, peer, half.span(), peer, half.span(), comm::Tag::all_gather, {});
    }
    const std::vector<int> order = comm::checked_order({}, options.p);
    comm::ring_all_gather(column, chunks_by_place(doubles(elements), order), {},
                          {.segment_bytes = size_t{1} << 40});
  });
}

}  // namespace

LinpackTime linpack_time(const cluster::Description& machine, const LinpackOptions& options) {
  const int ranks = options.p * options.q;
  const sim::Network network(machine, cluster::places(machine, ranks));
  const auto& kind = machine.kinds[static_cast<size_t>(network.place(0).kind)];
  const cluster::Nodes& nodes = machine.nodes[static_cast<size_t>(network.place(0).nodes)];
  const double nb = options.block;
  LinpackTime time;
  time.n = std::floor(
      std::sqrt(options.memory_share * static_cast<double>(kind.memory_bytes) * ranks / 8));
  const double panels = time.n / nb;
  const double latency = network.route(0, options.p - 1 > 0 ? options.p - 1 : 0).latency_seconds;
  const double cores =
      options.node_flops_per_second * options.panel_efficiency / std::min(ranks, nodes.devices);
  for (int sample = 0; sample < kSamples; ++sample) {
    const double left = time.n * (1 - (sample + 0.5) / kSamples);
    const double rows = left / options.p, columns = left / options.q;
    const double update = 2 * rows * columns * nb * options.slowest /
                          (options.device_flops_per_second * options.product_efficiency);
    const double broadcast = broadcast_seconds(network, options, rows * nb);
    const double swap = swap_seconds(network, options, columns * nb);
    const double panel = nb * 2 * std::log2(options.p) * latency + rows * nb * nb / cores;
    const double copy = (rows + 2 * columns) * nb * 8 / nodes.link.bytes_per_second;
    const double weight = panels / kSamples;
    time.update += weight * update;
    time.broadcast += weight * broadcast;
    time.swap += weight * swap;
    time.panel += weight * panel;
    time.copy += weight * copy;
    time.seconds += weight * (std::max(update, panel + broadcast) + swap + copy);
  }
  const double flops = 2.0 / 3 * time.n * time.n * time.n;
  const double peak = ranks * options.device_flops_per_second;
  time.efficiency = flops / time.seconds / peak;
  time.efficiency_exposed =
      flops / (time.update + time.broadcast + time.swap + time.panel + time.copy) / peak;
  return time;
}

}  // namespace renkei::study
