#include "bench/collectives.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "comm/allreduce.h"
#include "timeline/recorder.h"

namespace renkei::bench {
namespace {

using comm::Buffer;
using comm::Call;
using comm::Communicator;
using comm::DType;
using comm::Reduction;

constexpr Call kCall{.operation = "benchmark"};

// Something that is timed: `run` does it once.
struct Contestant {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};  // of each round
};

// A round lasts about this long, so that the clock and one odd interruption do not decide it.
constexpr double kRoundSeconds = 4e-3;
constexpr int kMostRepetitions = 2000;

double slowest(Communicator& communicator, double seconds) {
  communicator.allreduce(Buffer(std::span(&seconds, 1)), Reduction::max, kCall);
  return seconds;
}

// Seconds of one repetition; that of the slowest rank. The contestant before may have left threads
// that are still busy and caches full of its own, so each begins with a few runs for itself.
double time_once(Communicator& communicator, const Contestant& contestant, int repetitions) {
  for (int i = 0; i < std::clamp(repetitions / 4, 1, 20); ++i) contestant.run();
  communicator.barrier(kCall);
  const double begin = now_seconds();
  for (int i = 0; i < repetitions; ++i) contestant.run();
  return slowest(communicator, now_seconds() - begin) / repetitions;
}

void time_interleaved(Communicator& communicator, std::vector<Contestant>& contestants,
                      int rounds) {
  std::vector<int> repetitions;
  for (const Contestant& contestant : contestants) {
    time_once(communicator, contestant, 1);  // warm up
    const double estimate = time_once(communicator, contestant, 2);
    repetitions.push_back(
        std::clamp(static_cast<int>(kRoundSeconds / estimate), 1, kMostRepetitions));
  }
  for (int round = 0; round < rounds; ++round)
    for (size_t c = 0; c < contestants.size(); ++c)
      contestants[c].seconds.push_back(time_once(communicator, contestants[c], repetitions[c]));
}

// Whole numbers, so that every order of additions gives the same bits.
float input_value(int rank, size_t i) {
  return static_cast<float>((i * 7 + size_t(rank) * 13) % 64);
}

// How many elements differ from the exact sum, over all ranks.
int64_t count_wrong(Communicator& communicator, std::span<float> buffer,
                    const std::function<void()>& allreduce) {
  const int ranks = communicator.transport().size();
  for (size_t i = 0; i < buffer.size(); ++i)
    buffer[i] = input_value(communicator.transport().rank(), i);
  communicator.barrier(kCall);
  allreduce();
  int64_t wrong = 0;
  for (size_t i = 0; i < buffer.size(); ++i) {
    float expected = 0;
    for (int rank = 0; rank < ranks; ++rank) expected += input_value(rank, i);
    wrong += buffer[i] != expected;
  }
  // The timed sums that follow must not grow without bound.
  std::ranges::fill(buffer, 0.0f);
  communicator.allreduce(Buffer(std::span(&wrong, 1)), Reduction::sum, kCall);
  return wrong;
}

// The memory traffic that no allreduce in place over shared memory can avoid: a rank reads its
// chunk of n buffers and writes n. On memory of its own, without any exchange, all ranks at once.
class MemoryBound {
 public:
  MemoryBound(size_t most_count, int ranks) : ranks_(ranks), memory_(most_count, 1.0f) {}

  void run(size_t count) {
    const size_t chunk = count / static_cast<size_t>(ranks_);
    if (chunk == 0) return;
    std::vector<const std::byte*> sources;
    for (int r = 0; r < ranks_; ++r)
      sources.push_back(
          reinterpret_cast<const std::byte*>(&memory_[static_cast<size_t>(r) * chunk]));
    for (int r = 0; r < ranks_; ++r) {
      // One pass reads all and writes the first; the others are written from cache or registers.
      const Buffer into(std::span(&memory_[static_cast<size_t>(r) * chunk], chunk));
      if (r == 0)
        comm::reduce_many(into, sources, Reduction::max, count > (1u << 20));
      else
        std::memcpy(into.data, sources[0], chunk * sizeof(float));
    }
  }

 private:
  int ranks_;
  std::vector<float> memory_;
};

CollectivesRow summarise(const std::vector<Contestant>& contestants, std::string buffers,
                         size_t count, int ranks) {
  const auto median = [](const Contestant& c) { return timeline::quantile(c.seconds, 0.5) * 1e6; };
  CollectivesRow row{.buffers = std::move(buffers),
                     .size_bytes = static_cast<int64_t>(count * sizeof(float)),
                     .count = static_cast<int64_t>(count),
                     .in_place_us = median(contestants[0]),
                     .in_place_p99_us = timeline::quantile(contestants[0].seconds, 0.99) * 1e6,
                     .out_of_place_us = median(contestants[1]),
                     .bound_us = median(contestants[2])};
  row.algorithm_gbs = static_cast<double>(row.size_bytes) / row.in_place_us / 1e3;
  row.bus_gbs = row.algorithm_gbs * 2 * (ranks - 1) / ranks;
  for (size_t c = 3; c < contestants.size(); ++c)
    row.peers_us.emplace_back(contestants[c].name, median(contestants[c]));
  return row;
}

}  // namespace

std::vector<CollectivesRow> measure_collectives(
    Communicator& communicator, const CollectivesOptions& options,
    const std::function<void(const CollectivesRow&)>& progress) {
  const int ranks = communicator.transport().size();
  const auto most =
      static_cast<size_t>(*std::ranges::max_element(options.sizes_bytes)) / sizeof(float);
  const Buffer shared = communicator.allocate(most, DType::f32);
  std::vector<float> own(most), input(most);
  MemoryBound bound(most, ranks);
  std::vector<std::unique_ptr<comm::Peer>> peers;
  if (options.peers && ranks > 1) {
    peers = comm::make_mpi_peers();
    for (auto& peer : comm::make_gloo_peers(communicator.transport()))
      peers.push_back(std::move(peer));
  }

  std::vector<CollectivesRow> rows;
  for (const int64_t size : options.sizes_bytes)
    for (const bool in_shared : {true, false}) {
      const size_t count = static_cast<size_t>(size) / sizeof(float);
      const std::span<float> buffer = in_shared
                                          ? std::span(reinterpret_cast<float*>(shared.data), count)
                                          : std::span(own.data(), count);
      const auto in_place = [&] {
        communicator.allreduce(Buffer(buffer), options.reduction, kCall);
      };
      std::vector<Contestant> contestants{{"ours", in_place},
                                          {"ours out of place",
                                           [&] {
                                             std::memcpy(buffer.data(), input.data(),
                                                         count * sizeof(float));
                                             in_place();
                                           }},
                                          {"bound", [&] { bound.run(count); }}};
      // Peers know private memory only, so they are the same for both kinds of buffers of ours.
      for (auto& peer : peers)
        contestants.push_back(
            {peer->name(), [&] { peer->allreduce(std::span(own.data(), count)); }});
      std::ranges::fill(own, 0.0f);
      const int64_t wrong = count_wrong(communicator, buffer, in_place);
      time_interleaved(communicator, contestants, options.rounds);
      rows.push_back(summarise(contestants, in_shared ? "shared" : "private", count, ranks));
      rows.back().wrong = wrong;
      rows.back().algorithm = communicator.choice(Buffer(buffer));
      progress(rows.back());
    }
  return rows;
}

}  // namespace renkei::bench
