// What an allreduce should take, and so which one to choose. b bytes on n = H L ranks, L on each of
// H hosts. A message of m bytes takes a + m/B: latency a and bandwidth B, inside a host (i) and
// between hosts (e), where B_e is a host's uplink, shared by its ranks. G is the rate of reduction.
//
//   tree              2 ceil(log2 n) (a + b/B) + ceil(log2 n) b/G, by level: inside or between
//   halving-doubling  2 log2 n a + 2 (n-1)/n b/B + (n-1)/n b/G; between hosts, L ranks share B_e;
//                     folding adds 2 a + 2 b/B + b/G when n is no power of two
//   ring              2 (n-1) a + 2 (n-1)/n b/B, a and B of the slowest link, in a good order
//   torus R x C       the ring of C, then the ring of R with b/C, then back; with C = L, C ranks
//                     share B_e
//   hierarchical      the ring of L inside, then any of the above on H hosts with b/L on each of L
//                     rails that share B_e
//
// The reductions of a pipelined step hide behind its transfer except for the first segment (Thakur,
// Rabenseifner and Gropp, 2005, has the formulas for one kind of link). The model ranks algorithms;
// its seconds are good to a factor of two.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace renkei::comm {

enum class Algorithm { automatic, ring, halving_doubling, tree, torus, hierarchical };

std::string_view name_of(Algorithm algorithm);     // "halving_doubling"
Algorithm parse_algorithm(std::string_view text);  // usage Error with all names

struct LinkCost {
  double latency_seconds = 0;
  double bytes_per_second = 1;
};

struct CostModel {
  // Without a measurement: messages through shared memory, and a 10 Gbit/s network.
  LinkCost inside = {2e-6, 5e9};
  LinkCost between = {30e-6, 1.2e9};
  double reduce_bytes_per_second = 10e9;
  int ranks = 1;
  int hosts = 1;
  bool even = true;  // every host has ranks / hosts ranks
};

struct Prediction {
  Algorithm algorithm;
  Algorithm outer;  // of the hierarchical one
  size_t segment_bytes;
  double seconds;
};

struct Choice {
  Algorithm algorithm = Algorithm::ring;
  Algorithm outer = Algorithm::ring;
  size_t segment_bytes = 0;
  double predicted_seconds = 0;
  std::vector<Prediction> candidates;  // all; the chosen one, then the fastest first
};

// `outer` counts for hierarchical only. Infinite where the algorithm makes no sense: hierarchical
// on one host, or with one rank on every host.
double predicted_seconds(const CostModel& model, Algorithm algorithm, size_t bytes,
                         size_t segment_bytes, Algorithm outer = Algorithm::ring);

// The segment that balances the overhead of more messages against the wait for the first one.
size_t best_segment_bytes(const CostModel& model, Algorithm algorithm, size_t bytes);

Choice choose(const CostModel& model, size_t bytes);

}  // namespace renkei::comm
