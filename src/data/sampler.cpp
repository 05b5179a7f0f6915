#include "data/sampler.h"

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "data/permutation.h"

namespace renkei::data {

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  if (options.count < 1)
    throw Error(ErrorCode::data, "the data set has no samples", "add samples to it");
  if (options.global_batch < 1)
    throw Error(ErrorCode::usage, fmt::format("the global batch size is {}", options.global_batch),
                "choose at least 1");
  if (options.ranks < 1)
    throw Error(ErrorCode::usage, fmt::format("the number of ranks is {}", options.ranks),
                "choose at least 1");
}

int64_t Sampler::sample_of_runs(int64_t epoch, int64_t position) const {
  const int64_t runs = options_.count / options_.run, run = position / options_.run;
  int64_t place = position;
  if (run < runs)
    place = Permutation(runs, options_.seed, epoch)(run) * options_.run + position % options_.run;
  Random random(options_.seed, RandomUse::run_offset, static_cast<uint32_t>(epoch), 0);
  const uint64_t drawn = uint64_t{random()} << 32 | random();
  const auto shift = static_cast<int64_t>(drawn % static_cast<uint64_t>(options_.count));
  return place < options_.count - shift ? place + shift : place - (options_.count - shift);
}

int64_t Sampler::steps_per_epoch() const {
  // Not (count + batch - 1) / batch: a batch that means "everything" may be near 2^63.
  return (options_.count - 1) / options_.global_batch + 1;
}

Slice Sampler::batch(int64_t step) const {
  if (step < 0 || step >= steps_per_epoch())
    throw Error(ErrorCode::bug,
                fmt::format("step {} is not in an epoch of {} steps", step, steps_per_epoch()));
  const int64_t begin = step * options_.global_batch;
  return {begin, begin + std::min(options_.global_batch, options_.count - begin)};
}

Slice Sampler::slice(int64_t step, int rank) const {
  if (rank < 0 || rank >= options_.ranks)
    throw Error(ErrorCode::bug, fmt::format("rank {} is not one of {}", rank, options_.ranks));
  const Slice whole = batch(step);
  const int64_t ranks = options_.ranks;
  // floor(r n / R) with the whole part taken out, as r n could overflow.
  const auto edge = [&](int64_t r) {
    return whole.begin + whole.size() / ranks * r + whole.size() % ranks * r / ranks;
  };
  return {edge(rank), edge(rank + int64_t{1})};
}

int64_t Sampler::largest_slice() const {
  return (std::min(options_.global_batch, options_.count) - 1) / options_.ranks + 1;
}

int64_t Sampler::sample(int64_t epoch, int64_t position) const {
  if (position < 0 || position >= options_.count)
    throw Error(ErrorCode::bug,
                fmt::format("position {} is not in a data set of {}", position, options_.count));
  if (!options_.shuffle) return position;
  if (options_.run > 1 && options_.run < options_.count) return sample_of_runs(epoch, position);
  return Permutation(options_.count, options_.seed, epoch)(position);
}

}  // namespace renkei::data
