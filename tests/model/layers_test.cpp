#include "model/layers.h"

#include <gtest/gtest.h>

#include "model/compute_options.h"

namespace renkei::model::layers {
namespace {

using torch::Tensor;
using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;

// A small network with every layer: pictures, bias, batch normalisation with and without what
// follows it, a residual, both kinds of pooling, branches, dense layers.
struct Everything : torch::nn::Module {
  Everything()
      : first(register_module("first", Conv2d(torch::nn::Conv2dOptions(3, 16, 5).padding(2)))),
        down(register_module(
            "down", Conv2d(torch::nn::Conv2dOptions(16, 32, 3).stride(2).padding(1).bias(false)))),
        down_bn(register_module("down_bn", BatchNorm2d(32))),
        body(register_module("body",
                             Conv2d(torch::nn::Conv2dOptions(32, 32, 3).padding(1).bias(false)))),
        body_bn(register_module("body_bn", BatchNorm2d(32))),
        row(register_module(
            "row", Conv2d(torch::nn::Conv2dOptions(32, 24, {1, 7}).padding({0, 3}).bias(false)))),
        row_bn(register_module("row_bn", BatchNorm2d(24))),
        odd(register_module("odd", Conv2d(torch::nn::Conv2dOptions(56, 12, 1)))),
        hidden(register_module("hidden", torch::nn::Linear(12 * 4 * 4, 20))),
        last(register_module("last", torch::nn::Linear(20 + 32, 5))) {}

  Tensor forward(Tensor x) {
    x = max_pool(conv_relu(x, first), {.kernel = 3, .stride = 2, .padding = 1});
    x = conv_bn(x, down, down_bn);
    const Tensor sum = conv_bn_add_relu(x, body, body_bn, x);
    const Tensor side =
        avg_pool(conv_bn_relu(sum, row, row_bn), {.kernel = 3, .stride = 1, .padding = 1});
    Tensor y = layers::conv(layers::concat({sum, side}), odd);  // 12 channels: not whole blocks
    y = linear_relu(layers::flatten(adaptive_avg_pool(y, 4)), hidden);
    return linear(torch::cat({y, global_avg_pool(sum)}, 1), last);
  }

  Conv2d first, down;
  BatchNorm2d down_bn;
  Conv2d body;
  BatchNorm2d body_bn;
  Conv2d row;
  BatchNorm2d row_bn;
  Conv2d odd;
  torch::nn::Linear hidden, last;
};

double relative_difference(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

class Layers : public testing::Test {
 protected:
  ~Layers() override { compute_options() = {}; }

  static std::shared_ptr<Everything> make() {
    torch::manual_seed(7);
    return std::make_shared<Everything>();
  }
  Tensor input = (torch::manual_seed(3), torch::randn({4, 3, 31, 29}));
};

TEST_F(Layers, GiveTheSameWithKernelsAsWithTorch) {
  const auto plain = make(), fast = make();
  compute_options() = {.blocked_layout = false};
  const Tensor expected = plain->forward(input);
  expected.square().sum().backward();
  compute_options() = {};
  const Tensor output = fast->forward(input);
  output.square().sum().backward();

  EXPECT_LT(relative_difference(output, expected), 1e-5);
  const auto expected_parameters = plain->named_parameters(), parameters = fast->named_parameters();
  for (const auto& named : expected_parameters)
    EXPECT_LT(relative_difference(parameters[named.key()].grad(), named.value().grad()), 1e-4)
        << named.key();
  const auto expected_buffers = plain->named_buffers(), buffers = fast->named_buffers();
  for (const auto& named : expected_buffers)
    EXPECT_LT(relative_difference(buffers[named.key()].to(torch::kFloat64),
                                  named.value().to(torch::kFloat64)),
              1e-5)
        << named.key();
}

TEST_F(Layers, GiveTheSameInEvaluation) {
  const auto network = make();
  network->forward(input);  // some running statistics
  network->eval();
  const torch::NoGradGuard no_grad;
  const Tensor output = network->forward(input);
  compute_options() = {.blocked_layout = false};
  EXPECT_LT(relative_difference(output, network->forward(input)), 1e-5);
}

TEST_F(Layers, EvaluateWithGradientsToo) {
  const auto network = make();
  network->forward(input);
  network->eval();
  const Tensor output = network->forward(input);
  output.sum().backward();
  const Tensor gradient = network->body->weight.grad().clone();
  network->zero_grad();
  compute_options() = {.blocked_layout = false};
  network->forward(input).sum().backward();
  EXPECT_LT(relative_difference(gradient, network->body->weight.grad()), 1e-4);
}

TEST_F(Layers, AreBitwiseTheSameEveryTime) {
  const auto a = make(), b = make();
  a->forward(input).sum().backward();
  b->forward(input).sum().backward();
  EXPECT_TRUE(torch::equal(a->first->weight.grad(), b->first->weight.grad()));
}

}  // namespace
}  // namespace renkei::model::layers
