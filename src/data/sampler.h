// Which samples does a rank take in a step?
//
// An epoch lines up all samples in one order, which depends on the seed and the epoch and on
// nothing else. Positions in that line are cut into batches of `global_batch`, the last of which
// may be smaller, and rank r of R takes the part [floor(r n / R), floor((r + 1) n / R)) of a batch
// of n. So in each epoch every sample is taken exactly once, every rank makes the same number of
// steps (a part may be empty), and the batches are the same for any number of ranks.
//
// The order is a permutation of the samples, all of which are equally likely. For storage on which
// it is slow to jump it may be one of runs of L neighbours instead: with s drawn anew for each
// epoch, the samples are turned by s places and cut into runs of L, which are permuted; the shorter
// one that is left over comes last. So neighbours are read together, and which ones these are
// differs from epoch to epoch. What this costs in randomness, shuffle_quality.h measures.
#pragma once

#include <cstdint>

namespace renkei::data {

struct SamplerOptions {
  int64_t count = 0;  // samples in the data set
  int64_t global_batch = 1;
  int ranks = 1;
  uint64_t seed = 1;
  bool shuffle = true;  // false: the order of the data set, in every epoch
  int64_t run = 1;      // neighbours that stay together
};

// Positions [begin, end) in the order of an epoch.
struct Slice {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const Slice&) const = default;
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  const SamplerOptions& options() const { return options_; }
  int64_t steps_per_epoch() const;
  Slice batch(int64_t step) const;  // of all ranks together; `step` counts within the epoch
  Slice slice(int64_t step, int rank) const;
  int64_t largest_slice() const;  // no rank takes more samples in a step
  int64_t sample(int64_t epoch, int64_t position) const;

 private:
  int64_t sample_of_runs(int64_t epoch, int64_t position) const;

  SamplerOptions options_;
};

}  // namespace renkei::data
