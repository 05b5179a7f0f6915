#include "run/batch_loader.h"

#include "base/error.h"

namespace renkei::run {

namespace {

torch::Dtype torch_dtype(data::DType dtype) {
  switch (dtype) {
    case data::DType::u8:
      return torch::kUInt8;
    case data::DType::i8:
      return torch::kInt8;
    case data::DType::i16:
      return torch::kInt16;
    case data::DType::i32:
      return torch::kInt32;
    case data::DType::i64:
      return torch::kInt64;
    case data::DType::f16:
      return torch::kFloat16;
    case data::DType::f32:
      return torch::kFloat32;
    case data::DType::f64:
      return torch::kFloat64;
    case data::DType::boolean:
      return torch::kBool;
  }
  throw Error(ErrorCode::bug, "a field of no type");
}

std::vector<int64_t> batch_shape(const data::Field& field, int64_t samples) {
  std::vector<int64_t> shape = field.shape;
  shape.insert(shape.begin(), samples);
  return shape;
}

std::vector<size_t> fields_of(const data::Dataset& dataset) {
  std::vector<size_t> fields;
  for (size_t i = 0; i < dataset.fields().size(); ++i)
    if (dataset.fields()[i].name.starts_with("input.")) fields.push_back(i);
  if (fields.empty()) fields.push_back(data::field_index(dataset.fields(), data::kInput));
  fields.push_back(data::field_index(dataset.fields(), data::kTarget));
  return fields;
}

torch::Tensor as_rows(const torch::Tensor& numbers) {
  return numbers.dim() == 1 ? numbers.unsqueeze(1) : numbers.flatten(1);
}

// Whole numbers that f32 can't hold are refused, not rounded.
torch::Tensor as_floats(const torch::Tensor& numbers) {
  constexpr int64_t kExact = int64_t{1} << 24;
  const bool wide =
      numbers.scalar_type() == torch::kInt32 || numbers.scalar_type() == torch::kInt64;
  if (wide && numbers.numel() > 0 && numbers.abs().max().item<int64_t>() > kExact)
    throw Error(ErrorCode::data, "a sample has ids above 16777216, which inputs can't hold yet",
                "number them anew, from 0 on");
  return numbers.to(torch::kFloat32);
}

// Programs take one f32 input; networks/join_inputs.h cuts a row of several apart.
torch::Tensor join(const std::vector<torch::Tensor>& inputs) {
  if (inputs.size() == 1) return as_floats(inputs[0]);
  std::vector<torch::Tensor> rows;
  for (const torch::Tensor& input : inputs) rows.push_back(as_floats(as_rows(input)));
  return torch::cat(rows, 1);
}

}  // namespace

BatchLoader::BatchLoader(const data::Dataset& dataset, data::Sampler sampler,
                         data::LoaderOptions options)
    : dataset_(dataset), sampler_(sampler), rank_(options.rank), fields_(fields_of(dataset)) {
  options.fields = fields_;
  if (dataset.source()) ahead_ = std::make_unique<data::Loader>(dataset, sampler, options);
}

void BatchLoader::close() {
  if (ahead_) ahead_->close();
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
  const int64_t begin = sampler_.slice(step, rank_).begin;
  std::vector<torch::Tensor> tensors =
      ahead_ ? view(epoch, step, in_share)
             : copy(epoch, {begin + in_share.begin, begin + in_share.end});
  Batch batch{.samples = in_share.size()};
  batch.target = std::move(tensors.back());
  tensors.pop_back();
  batch.input = join(tensors);
  // Labels stay whole numbers; a row of numbers, or of the labels of positions, is f32.
  if (!dataset_.fields()[fields_.back()].is_label())
    batch.target = as_floats(as_rows(batch.target));
  return batch;
}

std::vector<torch::Tensor> BatchLoader::copy(int64_t epoch, data::Slice positions) const {
  const int64_t samples = positions.size();
  std::vector<torch::Tensor> tensors;
  for (const size_t number : fields_) {
    const data::Field& field = dataset_.fields()[number];
    tensors.push_back(torch::empty(batch_shape(field, samples), torch_dtype(field.dtype)));
  }
  std::vector<data::FieldSpan> into(fields_.size());
  for (int64_t i = 0; i < samples; ++i) {
    for (size_t f = 0; f < fields_.size(); ++f) {
      const auto bytes = static_cast<size_t>(dataset_.fields()[fields_[f]].bytes());
      auto* begin = static_cast<std::byte*>(tensors[f].data_ptr());
      into[f] = {.field = fields_[f], .bytes = {begin + static_cast<size_t>(i) * bytes, bytes}};
    }
    dataset_.read(sampler_.sample(epoch, positions.begin + i), epoch, into);
  }
  return tensors;
}

std::vector<torch::Tensor> BatchLoader::view(int64_t epoch, int64_t step, data::Slice in_share) {
  if (!loaded_ || loaded_->epoch != epoch || loaded_->step != step) {
    loaded_.reset();  // its memory may be needed for the next one
    loaded_ = ahead_->load(epoch, step);
  }
  std::vector<torch::Tensor> tensors;
  for (size_t f = 0; f < fields_.size(); ++f) {
    const data::Field& field = dataset_.fields()[fields_[f]];
    const auto dtype = torch_dtype(field.dtype);
    if (loaded_->samples == 0) {  // this rank has none in this step
      tensors.push_back(torch::empty(batch_shape(field, 0), dtype));
      continue;
    }
    // The tensors keep the loaded memory for as long as they live.
    auto* bytes = const_cast<std::byte*>(loaded_->fields[f].bytes.data());
    tensors.push_back(torch::from_blob(
                          bytes, batch_shape(field, loaded_->samples),
                          [kept = loaded_](void*) mutable { kept.reset(); }, dtype)
                          .narrow(0, in_share.begin, in_share.size()));
  }
  return tensors;
}

}  // namespace renkei::run
