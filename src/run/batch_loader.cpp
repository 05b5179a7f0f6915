#include "run/batch_loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace renkei::run {

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

namespace {

std::vector<int64_t> batch_shape(const std::vector<int64_t>& of_sample, int64_t samples) {
  std::vector<int64_t> shape = of_sample;
  shape.insert(shape.begin(), samples);
  return shape;
}

}  // namespace

const torch::Tensor& Batch::input(std::string_view name) const {
  const auto found = inputs.find(name);
  if (found == inputs.end())
    throw Error(ErrorCode::bug, fmt::format("the input '{}' was not loaded", name));
  return found->second;
}

BatchLoader::BatchLoader(const data::Dataset& dataset, data::Sampler sampler,
                         data::LoaderOptions options, const std::vector<BatchInput>& inputs,
                         const std::vector<BatchInput>& elsewhere)
    : dataset_(dataset), sampler_(sampler), rank_(options.rank) {
  options.fields.emplace();
  for (const BatchInput& input : inputs) {
    taken_.push_back(take(input));
    options.fields->push_back(taken_.back().field);
  }
  for (const BatchInput& input : elsewhere) options.fields_elsewhere.push_back(take(input).field);
  // What a rank keeps for others it serves, whatever it uses itself.
  if (dataset.source() && (!inputs.empty() || options.peers))
    ahead_ = std::make_unique<data::Loader>(dataset, sampler, options);
}

void BatchLoader::close() {
  if (ahead_) ahead_->close();
}

BatchLoader::Taken BatchLoader::take(const BatchInput& input) const {
  const size_t number = data::field_index(dataset_.fields(), input.name);
  const data::Field& field = dataset_.fields()[number];
  if (input.shape && data::Field{.name = {}, .shape = *input.shape}.elements() != field.elements())
    throw Error(
        ErrorCode::data,
        fmt::format(
            "a sample has {} numbers in '{}' ({}), and the program takes {} there",
            field.elements(), input.name, field.origin,
            input.shape->empty() ? "one" : fmt::format("{}", fmt::join(*input.shape, " × "))),
        "choose another model, or other data");
  const bool fractions = c10::isFloatingType(torch_dtype(field.dtype));
  if (fractions && !c10::isFloatingType(input.dtype))
    throw Error(ErrorCode::data,
                fmt::format("'{}' ({}) is of {}, and the program takes whole numbers there",
                            input.name, field.origin, data::name_of(field.dtype)),
                "store whole numbers, or choose another field with --set data.fields");
  return {input, number};
}

torch::Tensor BatchLoader::convert(const torch::Tensor& numbers, const Taken& taken) const {
  const BatchInput& input = taken.input;
  torch::Tensor result = numbers;
  if (input.shape) result = result.view(batch_shape(*input.shape, numbers.size(0)));
  if (result.scalar_type() == input.dtype) return result;
  result = result.to(input.dtype);
  // Whole numbers that the type can't hold are refused, not rounded.
  if (!c10::isFloatingType(numbers.scalar_type()) &&
      !result.to(numbers.scalar_type()).view_as(numbers).equal(numbers))
    throw Error(ErrorCode::data,
                fmt::format("'{}' has whole numbers that {} can't hold", input.name,
                            torch::toString(input.dtype)),
                "number them anew, from 0 on, or export the model with a wider type");
  return result;
}

Batch BatchLoader::load(int64_t epoch, int64_t step, const std::vector<data::Slice>& in_share,
                        const std::vector<std::string>& names) {
  std::vector<size_t> chosen;
  for (const std::string& name : names)
    for (size_t i = 0; i < taken_.size(); ++i)
      if (taken_[i].input.name == name) chosen.push_back(i);
  if (in_share.size() == 1) return load(epoch, step, in_share[0], chosen);
  Batch all;
  std::map<std::string, std::vector<torch::Tensor>> parts;
  for (const data::Slice& slice : in_share) {
    const Batch part = load(epoch, step, slice, chosen);
    all.samples += part.samples;
    for (const auto& [name, tensor] : part.inputs) parts[name].push_back(tensor);
  }
  for (const auto& [name, tensors] : parts) all.inputs[name] = torch::cat(tensors);
  return all;
}

Batch BatchLoader::load(int64_t epoch, int64_t step, data::Slice in_share,
                        const std::vector<size_t>& chosen) {
  const int64_t begin = sampler_.slice(step, rank_).begin;
  const std::vector<torch::Tensor> tensors =
      ahead_ ? view(epoch, step, in_share, chosen)
             : copy(epoch, {begin + in_share.begin, begin + in_share.end}, chosen);
  Batch batch{.samples = in_share.size()};
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Taken& taken = taken_[chosen[i]];
    batch.inputs[taken.input.name] = convert(tensors[i], taken);
  }
  return batch;
}

std::vector<torch::Tensor> BatchLoader::copy(int64_t epoch, data::Slice positions,
                                             const std::vector<size_t>& chosen) const {
  const int64_t samples = positions.size();
  std::vector<torch::Tensor> tensors;
  std::vector<data::FieldSpan> into;
  for (const size_t place : chosen) {
    const size_t number = taken_[place].field;
    const data::Field& field = dataset_.fields()[number];
    tensors.push_back(torch::empty(batch_shape(field.shape, samples), torch_dtype(field.dtype)));
    into.push_back({.field = number,
                    .bytes = {static_cast<std::byte*>(tensors.back().data_ptr()),
                              static_cast<size_t>(field.bytes())}});
  }
  if (chosen.empty()) return tensors;
  for (int64_t i = 0; i < samples; ++i) {
    dataset_.read(sampler_.sample(epoch, positions.begin + i), epoch, into);
    for (data::FieldSpan& span : into)
      span.bytes = {span.bytes.data() + span.bytes.size(), span.bytes.size()};
  }
  return tensors;
}

std::vector<torch::Tensor> BatchLoader::view(int64_t epoch, int64_t step, data::Slice in_share,
                                             const std::vector<size_t>& chosen) {
  if (!loaded_ || loaded_->epoch != epoch || loaded_->step != step) {
    loaded_.reset();  // its memory may be needed for the next one
    loaded_ = ahead_->load(epoch, step);
  }
  std::vector<torch::Tensor> tensors;
  for (const size_t place : chosen) {
    const data::Field& field = dataset_.fields()[taken_[place].field];
    const auto dtype = torch_dtype(field.dtype);
    if (loaded_->samples == 0) {  // this rank has none in this step
      tensors.push_back(torch::empty(batch_shape(field.shape, 0), dtype));
      continue;
    }
    // The tensors keep the loaded memory for as long as they live.
    auto* bytes = const_cast<std::byte*>(loaded_->fields[place].bytes.data());
    tensors.push_back(torch::from_blob(
                          bytes, batch_shape(field.shape, loaded_->samples),
                          [kept = loaded_](void*) mutable { kept.reset(); }, dtype)
                          .narrow(0, in_share.begin, in_share.size()));
  }
  return tensors;
}

}  // namespace renkei::run
