#include "run/batch_loader.h"

namespace renkei::run {

BatchLoader::BatchLoader(const data::Dataset& dataset, data::Sampler sampler,
                         const data::LoaderOptions& options)
    : dataset_(dataset), sampler_(sampler), rank_(options.rank) {
  if (dataset.source()) ahead_ = std::make_unique<data::Loader>(dataset, sampler, options);
}

Batch BatchLoader::load(int64_t epoch, int64_t step, int part, int parts) {
  const int64_t mine = sampler_.slice(step, rank_).size();
  return load(epoch, step, {mine * part / parts, mine * (part + 1) / parts});
}

Batch BatchLoader::load(int64_t epoch, int64_t step, const std::vector<data::Slice>& in_share) {
  if (in_share.size() == 1) return load(epoch, step, in_share[0]);
  Batch all;
  std::vector<torch::Tensor> inputs, targets;
  for (const data::Slice& slice : in_share) {
    Batch part = load(epoch, step, slice);
    all.samples += part.samples;
    inputs.push_back(part.input);
    targets.push_back(part.target);
  }
  all.input = torch::cat(inputs);
  all.target = torch::cat(targets);
  return all;
}

Batch BatchLoader::load(int64_t epoch, int64_t step, data::Slice in_share) {
  if (ahead_) return view(epoch, step, in_share);
  const int64_t begin = sampler_.slice(step, rank_).begin;
  return copy(epoch, {begin + in_share.begin, begin + in_share.end});
}

Batch BatchLoader::copy(int64_t epoch, data::Slice positions) const {
  Batch batch{.samples = positions.size()};
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
    const int64_t sample = sampler_.sample(epoch, positions.begin + i);
    dataset_.read_augmented(sample, epoch,
                            {input + static_cast<size_t>(i) * sample_size, sample_size});
    if (labels)
      batch.target.data_ptr<int64_t>()[i] = dataset_.label(sample);
    else
      dataset_.read_target(
          sample,
          {batch.target.data_ptr<float>() + static_cast<size_t>(i) * target_size, target_size});
  }
  return batch;
}

Batch BatchLoader::view(int64_t epoch, int64_t step, data::Slice in_share) {
  if (!loaded_ || loaded_->epoch != epoch || loaded_->step != step) {
    loaded_.reset();  // its memory may be needed for the next one
    loaded_ = ahead_->load(epoch, step);
  }
  // The tensors keep the loaded memory for as long as they live.
  const auto tensor = [&](auto values, std::vector<int64_t> shape, torch::Dtype dtype) {
    shape.insert(shape.begin(), loaded_->samples);
    using Value = std::remove_const_t<typename decltype(values)::value_type>;
    return torch::from_blob(
               const_cast<Value*>(values.data()), shape,
               [kept = loaded_](void*) mutable { kept.reset(); }, dtype)
        .narrow(0, in_share.begin, in_share.size());
  };
  Batch batch{.samples = in_share.size()};
  batch.input = tensor(loaded_->inputs, dataset_.sample_shape(), torch::kFloat32);
  batch.target = dataset_.classes() > 0
                     ? tensor(loaded_->labels, {}, torch::kInt64)
                     : tensor(loaded_->targets, {dataset_.target_size()}, torch::kFloat32);
  return batch;
}

}  // namespace renkei::run
