#include "data/shuffle_quality.h"

#include <algorithm>
#include <vector>

namespace renkei::data {
namespace {

constexpr int64_t kMostBatches = 64;

}  // namespace

double shuffle_quality(const Sampler& sampler, int64_t classes,
                       const std::function<int64_t(int64_t)>& label) {
  const int64_t samples = sampler.options().count, batch = sampler.options().global_batch;
  const int64_t batches = batch > 0 ? samples / batch : 0;
  if (classes < 2 || batches < 2) return 1;
  std::vector<double> share(static_cast<size_t>(classes), 0);
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int64_t found = label(sample);
    if (found >= 0 && found < classes)
      share[static_cast<size_t>(found)] += 1 / static_cast<double>(samples);
  }
  const auto present =
      static_cast<double>(std::ranges::count_if(share, [](double p) { return p > 0; }));
  if (present < 2) return 1;

  const int64_t measured = std::min(batches, kMostBatches);
  double sum = 0;
  for (int64_t i = 0; i < measured; ++i) {
    const Slice slice = sampler.batch(i * batches / measured);
    std::vector<double> counts(share.size(), 0);
    for (int64_t position = slice.begin; position < slice.end; ++position) {
      const int64_t found = label(sampler.sample(0, position));
      if (found >= 0 && found < classes) counts[static_cast<size_t>(found)] += 1;
    }
    for (size_t c = 0; c < share.size(); ++c)
      if (share[c] > 0) {
        const double expected = share[c] * static_cast<double>(batch);
        sum += (counts[c] - expected) * (counts[c] - expected) / expected;
      }
  }
  const double at_random =
      (present - 1) * static_cast<double>(samples - batch) / static_cast<double>(samples - 1);
  const double mean = sum / static_cast<double>(measured);
  return mean > at_random ? at_random / mean : 1;
}

}  // namespace renkei::data
