// Which samples does a replica of a stage take?
//
// A batch is cut into lanes, as many as the least common multiple of the stages' replicas, and a
// lane into micro-batches. Replica i of r takes the lanes [i L / r, (i + 1) L / r) of each
// micro-batch. So neighbouring stages with different numbers of replicas agree on who has what, and
// with one number of replicas everywhere the samples are those of data parallel training.
#pragma once

#include <numeric>
#include <vector>

#include "data/sampler.h"

namespace renkei::run {

struct LaneRange {
  int begin = 0, end = 0;
};

class Lanes {
 public:
  // The options' ranks are replaced by the lanes.
  Lanes(data::SamplerOptions options, int lanes, int micro_batches)
      : sampler_([&] {
          options.ranks = lanes;
          return options;
        }()),
        micro_batches_(micro_batches) {}

  static int count(const std::vector<std::vector<int>>& ranks_of_stage) {
    int lanes = 1;
    for (const auto& ranks : ranks_of_stage)
      lanes = std::lcm(lanes, static_cast<int>(ranks.size()));
    return lanes;
  }

  int count() const { return sampler_.options().ranks; }
  int micro_batches() const { return micro_batches_; }
  LaneRange of_replica(int replica, int replicas) const {
    return {replica * count() / replicas, (replica + 1) * count() / replicas};
  }
  const data::Sampler& sampler() const { return sampler_; }

  int64_t samples(int64_t step, int micro_batch, const LaneRange& lanes) const {
    int64_t sum = 0;
    for (const data::Slice& slice : slices(step, micro_batch, lanes)) sum += slice.size();
    return sum;
  }
  // Of each lane, in positions from the begin of the first lane.
  std::vector<data::Slice> slices(int64_t step, int micro_batch, const LaneRange& lanes) const {
    std::vector<data::Slice> list;
    const int64_t origin = sampler_.slice(step, lanes.begin).begin;
    for (int lane = lanes.begin; lane < lanes.end; ++lane) {
      const data::Slice all = sampler_.slice(step, lane);
      list.push_back({all.begin - origin + all.size() * micro_batch / micro_batches_,
                      all.begin - origin + all.size() * (micro_batch + 1) / micro_batches_});
    }
    return list;
  }

 private:
  data::Sampler sampler_;
  int micro_batches_;
};

}  // namespace renkei::run
