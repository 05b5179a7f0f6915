#include "run/op_memory.h"

#include <gtest/gtest.h>

#include "run/memory.h"
#include "run/op_costs.h"
#include "tests/run/networks.h"

namespace renkei::run {
namespace {

// What forward leaves behind in one process: all that autograd keeps, and the loss.
int64_t kept_by_the_whole(const TestCase& test, int64_t samples) {
  const Model model = test.make_model();
  const CutProgram cut(model.training.program, samples);
  std::vector<graph::OpIndex> ops(cut.graph().ops.size());
  for (size_t i = 0; i < ops.size(); ++i) ops[i] = static_cast<graph::OpIndex>(i);
  const Executor executor = cut.executor(ops, {cut.graph().outputs.at(0)});
  const auto state = tensors_at(model.training.state, executor.state());
  std::vector<torch::Tensor> inputs;
  for (const int input : cut.inputs_of(executor))
    inputs.push_back(torch::zeros(cut.shape(input, samples), cut.dtype(input)));
  ExecutionContext context;
  const int64_t before = memory_use().live;
  const std::vector<torch::Tensor> outputs = executor.run(inputs, state, samples, context);
  return memory_use().live - before;
}

class OpMemoryOf : public testing::TestWithParam<std::string> {};

TEST_P(OpMemoryOf, AddsUpToWhatTheWholeNetworkKeeps) {
  install_memory_pools();
  const TestCase test = test_case(GetParam());
  constexpr int64_t kSamples = 4;
  Model model = test.make_model();
  const graph::Graph graph = measured_graph(model, {.samples = kSamples, .repetitions = 1});
  int64_t sum = 0;
  for (const graph::Op& op : graph.ops) sum += op.saved_bytes;
  const auto whole = static_cast<double>(kept_by_the_whole(test, kSamples));
  EXPECT_NEAR(static_cast<double>(sum), whole, 0.02 * whole);
}

INSTANTIATE_TEST_SUITE_P(Networks, OpMemoryOf,
                         testing::Values("mlp", "lenet", "resnet18", "gpt", "bert", "unet"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace renkei::run
