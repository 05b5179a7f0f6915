#include "job/network_data.h"

#include <fmt/format.h>

#include "data/random_data.h"
#include "data/random_tokens.h"
#include "networks/settings.h"

namespace renkei::job {

std::unique_ptr<data::Dataset> make_random_data(const networks::Network& network, int64_t count,
                                                uint64_t seed) {
  const networks::RandomSample& sample = network.random_sample;
  using Target = networks::RandomTarget;
  if (sample.target == Target::next_token || sample.target == Target::masked_token)
    return std::make_unique<data::RandomTokens>(
        data::RandomTokensOptions{.count = count,
                                  .sequence = sample.target_size,
                                  .vocabulary = sample.classes,
                                  .masked = sample.target == Target::masked_token,
                                  .seed = seed});
  data::RandomDataOptions options{
      .sample_shape = network.input_shape,
      .count = count,
      .classes = sample.target == Target::label ? sample.classes : 0,
      .target_size = sample.target_size,
      .seed = seed,
      .target_below = sample.target == Target::label_per_position ? sample.classes : 0};
  // Today's programs take one input; of several the loader makes one (networks/join_inputs.h).
  const bool one = sample.inputs.size() == 1;
  for (size_t i = 0; i < sample.inputs.size(); ++i)
    options.inputs.push_back(
        {.name = one ? std::string(data::kInput) : fmt::format("{}.{}", data::kInput, i),
         .shape = one ? network.input_shape : std::vector<int64_t>{sample.inputs[i].size},
         .below = sample.inputs[i].below});
  return std::make_unique<data::RandomData>(options);
}

DataNeeds needs_of(const networks::Network& network, int threads) {
  return {
      .sample_shape = network.input_shape,
      .make_random = [&network](int64_t count,
                                uint64_t seed) { return make_random_data(network, count, seed); },
      .outputs = network.outputs,
      .threads = threads};
}

namespace {

const data::Field& target_of(const data::Dataset& data) {
  return data.fields()[data::field_index(data.fields(), data::kTarget)];
}

networks::LossOptions loss_of(const Settings& settings, const networks::Network& network,
                              const data::Dataset& data, bool numbers) {
  const data::Field& target = target_of(data);
  const networks::Objective otherwise =
      numbers ? networks::Objective::regression : networks::Objective::classification;
  return {.objective = networks::chosen_objective(settings).value_or(otherwise),
          .target = {.label = target.is_label(), .size = target.is_label() ? 0 : target.elements()},
          .auxiliary_weight = network.auxiliary_weight};
}

}  // namespace

networks::LossOptions loss_for_random_data(const Settings& settings,
                                           const networks::Network& network,
                                           const data::Dataset& data) {
  return loss_of(settings, network, data,
                 network.random_sample.target == networks::RandomTarget::numbers);
}

networks::LossOptions loss_for(const Settings& settings, const networks::Network& network,
                               const data::Dataset& data) {
  if (settings.text("data.source") == "random")
    return loss_for_random_data(settings, network, data);
  return loss_of(settings, network, data, !target_of(data).is_label());
}

}  // namespace renkei::job
