#include "job/network_data.h"

#include "base/error.h"
#include "data/random_data.h"
#include "data/random_tokens.h"
#include "networks/settings.h"

namespace renkei::job {
namespace {

using networks::RandomTarget;

// The input that gets what a loss is computed from; empty where a network needs none.
std::string target_name(const networks::Network& network) {
  if (!network.computes_loss) return std::string(data::kTarget);
  return network.training.inputs.size() > 1 ? network.training.inputs.back().name : "";
}

networks::LossOptions loss_of(const Settings& settings, const networks::Network& network,
                              const networks::Target& target, bool numbers) {
  networks::Objective objective =
      numbers ? networks::Objective::regression : networks::Objective::classification;
  if (network.computes_loss) objective = networks::Objective::own_loss;
  return {.objective = networks::chosen_objective(settings).value_or(objective),
          .target = target,
          .auxiliary_weight = network.auxiliary_weight};
}

}  // namespace

std::unique_ptr<data::Dataset> make_random_data(const networks::Network& network, int64_t count,
                                                uint64_t seed) {
  const networks::RandomSample& sample = network.random_sample;
  if (sample.target == RandomTarget::next_token || sample.target == RandomTarget::masked_token)
    return std::make_unique<data::RandomTokens>(
        data::RandomTokensOptions{.count = count,
                                  .sequence = sample.target_size,
                                  .vocabulary = sample.classes,
                                  .masked = sample.target == RandomTarget::masked_token,
                                  .seed = seed});
  const std::string target = target_name(network);
  if (sample.target != RandomTarget::numbers && sample.classes == 0 && !target.empty())
    throw Error(ErrorCode::usage,
                "the model computes its loss from labels, but how many classes there are is not "
                "known",
                "add --set model.classes=N");
  data::RandomDataOptions options{
      .sample_shape = {},
      .count = count,
      .classes = sample.target == RandomTarget::label ? std::max<int64_t>(sample.classes, 1) : 0,
      .target_size = sample.target_size,
      .seed = seed,
      .target_below = sample.target == RandomTarget::label_per_position ? sample.classes : 0};
  if (!target.empty()) options.target_name = target;
  const std::vector<networks::InputShape> inputs = networks::input_shapes(network.training);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name != target)
      options.inputs.push_back({.name = inputs[i].name,
                                .shape = inputs[i].shape,
                                .below = i < sample.below.size() ? sample.below[i] : 0});
  return std::make_unique<data::RandomData>(options);
}

DataNeeds needs_of(const networks::Network& network, int threads) {
  return {
      .inputs = networks::input_shapes(network.training),
      .target = target_name(network),
      .make_random = [&network](int64_t count,
                                uint64_t seed) { return make_random_data(network, count, seed); },
      .outputs = network.outputs,
      .threads = threads};
}

networks::LossOptions loss_for_random_data(const Settings& settings,
                                           const networks::Network& network) {
  const networks::RandomSample& sample = network.random_sample;
  const bool label = sample.target == RandomTarget::label;
  return loss_of(settings, network, {.label = label, .size = label ? 0 : sample.target_size},
                 sample.target == RandomTarget::numbers);
}

networks::LossOptions loss_for(const Settings& settings, const networks::Network& network,
                               const data::Dataset& data) {
  if (settings.text("data.source") == "random") return loss_for_random_data(settings, network);
  if (network.computes_loss) return loss_of(settings, network, {}, false);
  const data::Field& target = data.fields()[data::field_index(data.fields(), data::kTarget)];
  const bool label = target.is_label();
  return loss_of(settings, network, {.label = label, .size = label ? 0 : target.elements()},
                 !label);
}

}  // namespace renkei::job
