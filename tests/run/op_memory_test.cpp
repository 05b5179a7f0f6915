#include "run/op_memory.h"

#include <gtest/gtest.h>

#include "run/captures.h"
#include "run/memory.h"
#include "run/op_costs.h"
#include "tests/run/networks.h"

namespace renkei::run {
namespace {

// What forward leaves behind in one process: all that autograd keeps, and the loss.
int64_t kept_by_the_whole(const TestCase& test, int64_t samples) {
  const auto network = test.make_network();
  const model::Capture capture = capture_training(*network, test.objective, *test.data, samples);
  std::vector<graph::OpIndex> ops(capture.graph.ops.size());
  for (size_t i = 0; i < ops.size(); ++i) ops[i] = static_cast<graph::OpIndex>(i);
  const model::Program program(capture, ops, {capture.graph.outputs.at(0)});
  std::vector<torch::Tensor> state, inputs;
  for (const int p : program.parameters())
    state.push_back(capture.parameters[static_cast<size_t>(p)]);
  for (const int input : program.inputs()) {
    const auto i = static_cast<size_t>(input);
    const auto type = capture.values[i]->type()->expect<c10::TensorType>()->scalarType();
    inputs.push_back(torch::zeros(capture.graph.values[i].shape, *type));
  }
  const int64_t before = memory_use().live;
  const std::vector<torch::Tensor> outputs = program.run(inputs, state);
  return memory_use().live - before;
}

class OpMemoryOf : public testing::TestWithParam<std::string> {};

TEST_P(OpMemoryOf, AddsUpToWhatTheWholeNetworkKeeps) {
  install_memory_pools();
  const TestCase test = test_case(GetParam());
  constexpr int64_t kSamples = 4;
  const auto network = test.make_network();
  const graph::Graph graph =
      measured_graph(*network, test.objective, *test.data, {.samples = kSamples, .repetitions = 1});
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
