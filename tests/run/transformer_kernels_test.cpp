// Networks of transformers computed by our kernels, against the same by Torch's operations.
#include <gtest/gtest.h>

#include <set>

#include "networks/settings.h"
#include "run/executor.h"
#include "tests/run/networks.h"

namespace renkei::run {
namespace {

networks::Network transformer(const std::string& name, const std::string& dropout) {
  Settings settings;
  networks::declare_settings(settings);
  settings.set("model.name", name, "test");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"hidden", "48"},
                                                        {"layers", "2"},
                                                        {"heads", "3"},
                                                        {"sequence", "10"},
                                                        {"vocabulary", "37"},
                                                        {"dropout", dropout}})
    settings.set("model." + key, value, "test");
  return networks::make_network(settings);
}

struct Computed {
  torch::Tensor loss;
  std::vector<torch::Tensor> gradients;
};

Computed compute(const std::string& name, const rewrite::RewriteOptions& options) {
  Model model = make_model(
      {.network = transformer(name, "0")},
      {.objective = networks::Objective::classification, .target = {.label = false, .size = 10}},
      {.rewrite = options});
  const Executor executor(model.training.program, whole(model.training.program));
  torch::manual_seed(3);
  const torch::Tensor ids = torch::randint(37, {3, 10}, torch::kInt64);
  const torch::Tensor target = torch::randint(37, {3, 10}, torch::kInt64);
  target[0][4] = -100;  // not predicted
  const Batch batch{.inputs = {{"input", ids}, {"target", target}}, .samples = 3};
  ExecutionContext context;
  Computed computed;
  computed.loss = executor
                      .run(batch_inputs(model.training.program, executor.inputs(), batch),
                           tensors_at(model.training.state, executor.state()), 3, context)
                      .at(0);
  computed.loss.backward();
  for (const torch::Tensor& parameter : model.trained())
    computed.gradients.push_back(parameter.grad());
  return computed;
}

double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max().clamp_min(1e-12)).item<double>();
}

class TransformerKernels : public testing::TestWithParam<std::string> {};

TEST_P(TransformerKernels, GiveTheLossAndGradientsOfTorchsOperations) {
  const rewrite::RewriteOptions none{.blocked_layout = false, .dense = false};
  const Computed expected = compute(GetParam(), none), ours = compute(GetParam(), all_rewrites());
  EXPECT_LT(difference(ours.loss.detach(), expected.loss.detach()), 1e-6);
  ASSERT_EQ(ours.gradients.size(), expected.gradients.size());
  for (size_t i = 0; i < ours.gradients.size(); ++i) {
    ASSERT_TRUE(ours.gradients[i].defined() && expected.gradients[i].defined()) << i;
    EXPECT_LT(difference(ours.gradients[i], expected.gradients[i]), 2e-5) << "parameter " << i;
  }
}

TEST_P(TransformerKernels, AreAllInUse) {
  const auto rewritten = make_model({.network = transformer(GetParam(), "0.1")},
                                    {.objective = networks::Objective::classification,
                                     .target = {.label = false, .size = 10}},
                                    {.rewrite = all_rewrites()})
                             .training.program;
  std::set<std::string> targets;
  for (const program::Op& op : rewritten.ops) targets.insert(op.target);
  for (const char* target : {"renkei.linear.default", "renkei.linear.gelu", "renkei.linear.add",
                             "renkei.layer_norm.default", "renkei.dropout.default",
                             "renkei.embedding.default", "renkei.cross_entropy.default"})
    EXPECT_TRUE(targets.contains(target)) << target;
}

INSTANTIATE_TEST_SUITE_P(Networks, TransformerKernels, testing::Values("gpt", "bert"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace renkei::run
