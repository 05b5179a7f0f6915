// Rewritten programs compute what the programs as they were written compute: outputs, gradients of
// all parameters, buffers.
#include "rewrite/rewrite.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "run/executor.h"
#include "run/model.h"
#include "tests/rewrite/sketch.h"

namespace renkei::run {
namespace {

using program::Program;
using rewrite::RewriteOptions;
using rewrite::Sketch;

struct Results {
  std::vector<torch::Tensor> outputs, state, gradients;
};

// Values that depend on the name only; those of normalisations keep it well conditioned.
torch::Tensor first_values(const program::State& state, torch::Tensor tensor) {
  torch::manual_seed(static_cast<uint64_t>(std::hash<std::string>()(state.name)));
  torch::NoGradGuard no_grad;
  if (!tensor.is_floating_point()) return tensor.zero_();
  if (tensor.dim() <= 1) return tensor.uniform_(0.5, 1.5);
  return tensor.normal_(0, std::sqrt(2.0 / static_cast<double>(tensor[0].numel())));
}

Results run(const Program& program, bool winograd, bool autocast = false) {
  std::vector<torch::Tensor> state, inputs;
  for (size_t i = 0; i < program.state.size(); ++i)
    state.push_back(first_values(program.state[i], make_state(program, i)));
  constexpr int64_t kSamples = 3;
  const auto symbols = with_batch(program, kSamples);
  const Executor executor(program, whole(program));
  for (const auto id : executor.inputs()) {
    torch::manual_seed(7);
    inputs.push_back(torch::randn(sizes_of(program.value(id), symbols)));
  }
  ExecutionContext context{.winograd = winograd};
  at::autocast::set_autocast_enabled(at::kCPU, autocast);
  Results results{.outputs =
                      executor.run(inputs, tensors_at(state, executor.state()), kSamples, context)};
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  torch::Tensor loss = torch::zeros({});
  for (auto& output : results.outputs) {
    output = output.to(torch::kFloat);
    torch::manual_seed(8);
    loss = loss + (output * torch::randn(output.sizes())).sum();
  }
  loss.backward();
  for (const auto& tensor : state) {
    results.state.push_back(tensor.detach());
    if (tensor.grad().defined()) results.gradients.push_back(tensor.grad());
  }
  return results;
}

double distance(const torch::Tensor& a, const torch::Tensor& b) {
  const double norm = b.to(torch::kDouble).norm().item<double>();
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).norm().item<double>() / std::max(norm, 1e-6);
}

void expect_near(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b,
                 double tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].sizes(), b[i].sizes()) << what << ' ' << i;
    EXPECT_LT(distance(a[i], b[i]), tolerance) << what << ' ' << i;
  }
}

// Without Winograd's method, whose tolerance is its own. Gradients through batch normalisation are
// small differences of large sums: against f64, those of our kernels were off by up to 2.4e-5 in
// these networks, Torch's by up to 4e-6.
void expect_same(const Program& program, const RewriteOptions& options = {}) {
  const Results fast = run(rewrite::rewrite(program, options).program, false);
  const Results plain = run(program, false);
  expect_near(fast.outputs, plain.outputs, 1e-5, "output");
  expect_near(fast.state, plain.state, 1e-5, "state");
  expect_near(fast.gradients, plain.gradients, 5e-5, "gradient");
}

using rewrite::List;
using rewrite::Reference;
using rewrite::Size;
using rewrite::ValueId;

ValueId block(Sketch& net, const std::string& name, ValueId x, int64_t width, int64_t stride) {
  ValueId y =
      net.relu_(net.batch_norm(name + ".bn1", net.conv(name + ".conv1", x, width, 3, stride)));
  y = net.batch_norm(name + ".bn2", net.conv(name + ".conv2", y, width));
  if (net.sizes(x) != net.sizes(y))
    x = net.batch_norm(name + ".down.1", net.conv(name + ".down.0", x, width, 1, stride));
  return net.relu_(net.binary("add_", y, x));
}

TEST(Rewrite, ResidualBlocksComputeTheSame) {
  Sketch net;
  ValueId x = net.relu_(net.batch_norm("bn", net.conv("stem", net.image(3, 30), 16, 7, 2)));
  x = net.max_pool(x, 3, 2, 1);
  x = block(net, "a", x, 16, 1);
  x = block(net, "b", x, 32, 2);
  net.output(net.linear("fc", net.flatten(net.global_pool(x)), 10));
  expect_same(net.program);
}

TEST(Rewrite, BlocksOf16ComputeTheSame) {
  Sketch net;
  ValueId x = net.relu_(net.batch_norm("bn", net.conv("stem", net.image(3, 20), 16)));
  x = net.max_pool(net.relu(net.conv("odd", x, 24)), 2, 2);
  x = block(net, "a", x, 32, 1);
  net.output(net.flatten(net.global_pool(x)));
  expect_same(net.program, {.block = 16});
}

TEST(Rewrite, BranchesThatAreReadTwiceComputeTheSame) {
  Sketch net;
  const ValueId x = net.conv("stem", net.image(3, 16), 16);
  const ValueId a = net.relu(net.conv("a", x, 24, 1)), b = net.conv("b", x, 8);
  const ValueId both = net.op("aten.cat.default",
                              {{"tensors", List{Reference{a}, Reference{b}}}, {"dim", int64_t{1}}},
                              {net.batch, 32, 16, 16});
  net.output(net.conv("c", both, 8));
  net.output(net.binary("mul", net.unary("sigmoid", b), net.relu_(b)));
  expect_same(net.program);
}

TEST(Rewrite, SqueezeAndExciteWithDepthwiseConvolutionsComputesTheSame) {
  Sketch net;
  ValueId x = net.unary("silu_", net.batch_norm("bn", net.conv("stem", net.image(3, 16), 16)));
  x = net.unary("hardswish", net.conv("depthwise", x, 16, 3, 1, 16));
  const ValueId squeezed = net.relu(net.conv("fc1", net.global_pool(x), 4, 1));
  const ValueId scale = net.unary("sigmoid", net.conv("fc2", squeezed, 16, 1));
  x = net.op("aten.mul.Tensor", {{"self", Reference{scale}}, {"other", Reference{x}}},
             std::vector<Size>(net.sizes(x)));
  x = net.binary("mul", x, net.state("layer_scale", {16, 1, 1}));
  net.output(net.conv("project", x, 8, 1));
  expect_same(net.program);
}

TEST(Rewrite, DenseLayersOfMoreDimensionsComputeTheSame) {
  Sketch net;
  const ValueId x = net.input("x", {net.batch, 5, 32});
  net.output(net.linear("b", net.relu(net.linear("a", x, 64)), 16));
  expect_same(net.program);
}

TEST(Rewrite, Bf16IsWhatAutocastComputes) {
  Sketch net;
  ValueId x = net.relu_(net.batch_norm("bn", net.conv("stem", net.image(3, 12), 16)));
  x = net.linear("a", net.flatten(net.global_pool(block(net, "b", x, 16, 1))), 32);
  net.output(net.linear("c", net.unary("gelu", x), 10));
  const RewriteOptions options{.bf16 = true};
  const Results ours = run(rewrite::rewrite(net.program, options).program, false);
  const Results theirs = run(net.program, false, true);
  constexpr double kRounding = 1.0 / 128;  // of bf16's 8 bits
  expect_near(ours.outputs, theirs.outputs, kRounding, "output");
  expect_near(ours.state, theirs.state, kRounding, "state");
  expect_near(ours.gradients, theirs.gradients, 4 * kRounding, "gradient");
}

}  // namespace
}  // namespace renkei::run
