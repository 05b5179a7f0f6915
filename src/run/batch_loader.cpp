#include "run/batch_loader.h"

namespace renkei::run {

Batch BatchLoader::load(int64_t epoch, int64_t step, int part, int parts) const {
  const data::Slice mine = sampler_.slice(step, rank_);
  const int64_t begin = mine.begin + mine.size() * part / parts;
  const int64_t end = mine.begin + mine.size() * (part + 1) / parts;

  Batch batch{.samples = end - begin};
  std::vector<int64_t> shape = dataset_.sample_shape();
  const auto sample_size = static_cast<size_t>(dataset_.sample_size());
  shape.insert(shape.begin(), batch.samples);
  batch.input = torch::empty(shape);
  auto* input = batch.input.data_ptr<float>();

  const auto target_size = static_cast<size_t>(dataset_.target_size());
  const bool labels = dataset_.classes() > 0;
  batch.target = labels ? torch::empty({batch.samples}, torch::kInt64)
                        : torch::empty({batch.samples, dataset_.target_size()});
  for (int64_t i = 0; i < batch.samples; ++i) {
    const int64_t sample = sampler_.sample(epoch, begin + i);
    dataset_.read_input(sample, {input + static_cast<size_t>(i) * sample_size, sample_size});
    if (labels)
      batch.target.data_ptr<int64_t>()[i] = dataset_.label(sample);
    else
      dataset_.read_target(
          sample,
          {batch.target.data_ptr<float>() + static_cast<size_t>(i) * target_size, target_size});
  }
  return batch;
}

}  // namespace renkei::run
