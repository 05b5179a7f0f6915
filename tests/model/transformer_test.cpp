#include "model/transformer.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::model {
namespace {

const TransformerOptions kSmall{
    .hidden = 16, .layers = 2, .heads = 4, .sequence = 6, .vocabulary = 11, .dropout = 0};

// The scores of each position before and after the last token is replaced.
std::pair<torch::Tensor, torch::Tensor> with_another_last_token(Network& network) {
  const torch::NoGradGuard no_grad;
  torch::Tensor ids = torch::arange(6).view({1, 6});
  const torch::Tensor before = network.forward(ids);
  ids[0][5] = 9;
  return {before, network.forward(ids)};
}

TEST(Gpt, SeesOnlyWhatCameBefore) {
  Gpt network(kSmall);
  const auto [before, after] = with_another_last_token(network);
  EXPECT_EQ(before.sizes(), (std::vector<int64_t>{1, 11, 6}));
  EXPECT_TRUE(torch::equal(before.narrow(2, 0, 5), after.narrow(2, 0, 5)));
  EXPECT_FALSE(torch::allclose(before.narrow(2, 5, 1), after.narrow(2, 5, 1)));
}

TEST(Bert, SeesEverything) {
  Bert network(kSmall);
  const auto [before, after] = with_another_last_token(network);
  for (int64_t position = 0; position < 6; ++position)
    EXPECT_FALSE(torch::allclose(before.narrow(2, position, 1), after.narrow(2, position, 1)));
}

TEST(Transformers, AreTiedOrNot) {
  TransformerOptions untied = kSmall;
  untied.tied = false;
  EXPECT_EQ(count_parameters(Gpt(untied)) - count_parameters(Gpt(kSmall)), 11 * 16);
  EXPECT_EQ(count_parameters(Bert(untied)) - count_parameters(Bert(kSmall)), 11 * 16);
}

TEST(Transformers, HaveTheParametersOfThePublishedOnes) {
  // GPT-2 small with its 1024 positions has 124,439,808.
  EXPECT_EQ(count_parameters(Gpt({.sequence = 1024})), 124'439'808);
}

TEST(Transformers, TakeIdsAsNumbersOfAnyKind) {
  Gpt network(kSmall);
  const torch::Tensor ids = torch::tensor({{1, 2, 3, 4, 5, 6}});
  EXPECT_TRUE(torch::equal(network.forward(ids), network.forward(ids.to(torch::kFloat32))));
}

TEST(Transformers, RefuseHeadsThatDoNotDivideTheWidth) {
  Settings settings;
  declare_settings(settings);
  settings.set("model.name", "gpt", "test");
  settings.set("model.hidden", "30", "test");
  settings.set("model.heads", "4", "test");
  EXPECT_THROW(make_network(settings, 1), Error);
}

}  // namespace
}  // namespace renkei::model
