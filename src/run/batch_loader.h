#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/loader/loader.h"
#include "data/sampler.h"

namespace renkei::run {

// The samples of a micro-batch, as the inputs of a program take them: tensors by name, with a row
// for each sample.
struct Batch {
  std::map<std::string, torch::Tensor, std::less<>> inputs = {};
  int64_t samples = 0;

  const torch::Tensor& input(std::string_view name) const;  // a bug Error where there is none
};

torch::Dtype torch_dtype(data::DType dtype);

// What a program takes as an input.
struct BatchInput {
  std::string name;
  torch::ScalarType dtype = torch::kFloat32;
  std::optional<std::vector<int64_t>> shape = {};  // of a sample; none: as the data has it
};

// Turns the samples that this rank takes in a step into tensors. Data sets on storage are loaded
// ahead by threads; those in memory are copied when they are needed. Only the fields that this rank
// uses are read, and each becomes what its input takes, if that holds all its numbers.
class BatchLoader {
 public:
  // The rank is that of the options. Fields of the data have the names of the inputs; `elsewhere`
  // are inputs that other ranks load of the same samples.
  BatchLoader(const data::Dataset& dataset, data::Sampler sampler, data::LoaderOptions options,
              const std::vector<BatchInput>& inputs, const std::vector<BatchInput>& elsewhere = {});
  // At an orderly end, all ranks together.
  void close();

  int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }
  int64_t global_samples(int64_t step) const { return sampler_.batch(step).size(); }

  // Some slices of this rank's share of the step, one after the other, for some of the inputs.
  Batch load(int64_t epoch, int64_t step, const std::vector<data::Slice>& in_share,
             const std::vector<std::string>& names);

 private:
  struct Taken {
    BatchInput input;
    size_t field;  // of the data set
  };
  Taken take(const BatchInput& input) const;
  torch::Tensor convert(const torch::Tensor& numbers, const Taken& taken) const;
  Batch load(int64_t epoch, int64_t step, data::Slice in_share, const std::vector<size_t>& chosen);
  // A tensor for each of the chosen, of the field's own type.
  std::vector<torch::Tensor> copy(int64_t epoch, data::Slice positions,
                                  const std::vector<size_t>& chosen) const;
  std::vector<torch::Tensor> view(int64_t epoch, int64_t step, data::Slice in_share,
                                  const std::vector<size_t>& chosen);

  const data::Dataset& dataset_;
  data::Sampler sampler_;
  int rank_;
  std::vector<Taken> taken_;
  std::unique_ptr<data::Loader> ahead_;              // null: the data is in memory, or not needed
  std::shared_ptr<const data::LoadedBatch> loaded_;  // the share of the step under way
};

}  // namespace renkei::run
