// When is a sum of gradients over many ranks over? By the closed form of the planner, or by running
// the collective itself over the described network.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/allreduce.h"
#include "schedule/evaluate.h"
#include "sim/network.h"

namespace renkei::sim {

enum class Detail { closed, rounds, flows };
std::string_view name_of(Detail detail);
Detail parse_detail(std::string_view name);  // usage Error with all names

struct ReductionOptions {
  Detail detail = Detail::rounds;
  comm::Algorithm algorithm = comm::Algorithm::automatic;
  std::vector<int> ring_order = {};  // empty: by rank, which is node by node
  int torus_columns = 0;             // 0: as square as possible
  double bytes_factor = 1;           // on the wire: 0.5 for 16 bits
  double bucket_bytes = 25 << 20;    // of the gradients, before that
  bool overlap = true;               // buckets go while backward computes; else one buffer after it
  bool scatter = false;              // each rank needs its share only: half an allreduce
};

class Reductions {
 public:
  Reductions(const cluster::Description& machine, Network network, ReductionOptions options);

  // When it is over on each of the members, in their order. Their ranks are those of the network;
  // a bucket is ready on a rank when that part of its computation is over.
  std::vector<double> ends(double gradient_bytes,
                           std::span<const schedule::RankedStep::Behind> members);
  // Of one buffer, when all begin together.
  double seconds(double bytes);

  const Network& network() const { return network_; }
  std::string algorithm(double bytes) const;  // that is used for a buffer

 private:
  void allreduce(comm::Transport& transport, double bytes) const;
  std::vector<double> bucket_sizes(double gradient_bytes) const;
  comm::AllreduceOptions allreduce_options() const;

  Network network_;
  ReductionOptions options_;
  comm::CostModel model_;
  std::map<double, double> seconds_;  // by bytes: what has been found out
};

}  // namespace renkei::sim
