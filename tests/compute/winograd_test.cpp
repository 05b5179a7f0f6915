#include "compute/winograd.h"

#include <gtest/gtest.h>

#include "tests/compute/images.h"
#include "tests/compute/reference_convolution.h"

namespace renkei::compute {
namespace {

// Relative to the largest value. The direct sum in single precision stays below 1e-6.
constexpr double kBound = 3e-5;

ConvolutionShape three_by_three(int64_t batch, int64_t in, int64_t height, int64_t width,
                                int64_t out, int64_t padding) {
  return {batch, in, height, width, out, 3, 3, 1, 1, padding, padding};
}

const ConvolutionShape kShapes[] = {
    three_by_three(2, 16, 8, 8, 16, 1),     // whole tiles
    three_by_three(2, 16, 7, 10, 32, 1),    // partial tiles, not square
    three_by_three(1, 32, 9, 5, 16, 0),     // no padding
    three_by_three(1, 16, 5, 5, 16, 2),     // more padding than usual
    three_by_three(3, 16, 3, 3, 48, 1),     // smaller than a tile
    three_by_three(1, 128, 14, 14, 64, 1),  // longer sums
    three_by_three(4, 16, 61, 61, 16, 1),   // several groups of tiles
};

ConvolutionShape with_block(ConvolutionShape shape, int64_t block) {
  shape.in_block = shape.out_block = block;
  return shape;
}

class Winograd : public testing::TestWithParam<std::tuple<ConvolutionShape, int64_t>> {
 protected:
  ConvolutionShape shape = with_block(std::get<0>(GetParam()), std::get<1>(GetParam()));
  std::vector<float> input = random_values(shape.input().count(), 1);
  std::vector<float> weights = random_values(shape.out_channels * shape.in_channels * 9, 2);
  std::vector<float> gradient = random_values(shape.output().count(), 3);
};

TEST_P(Winograd, ForwardStaysWithinItsBound) {
  const std::vector<float> bias = random_values(shape.out_channels, 4);
  const std::vector<float> blocked = to_blocked(shape.input(), input);
  std::vector<double> expected = reference_forward(shape, input, weights);
  std::vector<float> output(expected.size());
  winograd_forward(shape, blocked.data(), weights.data(), nullptr, false, output.data());
  EXPECT_LT(relative_error(to_plain(shape.output(), output), expected), kBound);

  winograd_forward(shape, blocked.data(), weights.data(), bias.data(), true, output.data());
  const auto pixels = static_cast<size_t>(shape.output().pixels());
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::max(0.0, expected[i] + static_cast<double>(bias[i / pixels % bias.size()]));
  EXPECT_LT(relative_error(to_plain(shape.output(), output), expected), kBound);
}

TEST_P(Winograd, BackwardStaysWithinItsBound) {
  const ConvolutionGradients expected = reference_backward(shape, input, weights, gradient);
  const std::vector<float> blocked_input = to_blocked(shape.input(), input);
  const std::vector<float> blocked = to_blocked(shape.output(), gradient);

  std::vector<float> input_gradient(input.size());
  winograd_backward_input(shape, blocked.data(), weights.data(), input_gradient.data());
  EXPECT_LT(relative_error(to_plain(shape.input(), input_gradient), expected.input), kBound);

  std::vector<float> weight_gradient(weights.size(), 1.0f);
  winograd_backward_weights(shape, blocked_input.data(), blocked.data(), Write::replace,
                            weight_gradient.data());
  EXPECT_LT(relative_error(weight_gradient, expected.weights), kBound);
  winograd_backward_weights(shape, blocked_input.data(), blocked.data(), Write::add,
                            weight_gradient.data());
  for (float& value : weight_gradient) value /= 2;
  EXPECT_LT(relative_error(weight_gradient, expected.weights), kBound);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Winograd,
                         testing::Combine(testing::ValuesIn(kShapes), testing::Values(8, 16)));

TEST(Winograd, KeepsWhatIsNotANumber) {
  for (const int64_t block : {8, 16}) {
    const ConvolutionShape shape = with_block(three_by_three(1, 16, 8, 8, 16, 1), block);
    std::vector<float> input = random_values(shape.input().count(), 1), output(input.size());
    input[0] = NAN;
    const std::vector<float> weights = random_values(shape.weights(), 2);
    winograd_forward(shape, input.data(), weights.data(), nullptr, true, output.data());
    EXPECT_TRUE(std::isnan(output[0]));
  }
}

TEST(WinogradChoice, IsForThreeByThreeWithStrideOne) {
  EXPECT_TRUE(winograd_choice(three_by_three(8, 64, 56, 56, 64, 1)).forward);
  EXPECT_FALSE(winograd_choice({8, 64, 56, 56, 64, 3, 3, 2, 2, 1, 1}).forward);
  EXPECT_FALSE(winograd_choice({8, 64, 56, 56, 64, 3, 3, 1, 2, 1, 1}).forward);
  EXPECT_FALSE(winograd_choice({8, 64, 56, 56, 64, 1, 1, 1, 1, 0, 0}).forward);
  EXPECT_FALSE(winograd_choice({8, 64, 56, 56, 64, 3, 3, 1, 1, 2, 2, 2, 2}).forward);
  EXPECT_FALSE(winograd_choice({8, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1, 1, 2}).forward);
  EXPECT_FALSE(winograd_choice(three_by_three(8, 24, 56, 56, 64, 1)).forward);
  ConvolutionShape mixed = three_by_three(8, 64, 56, 56, 64, 1);
  mixed.out_block = 16;
  EXPECT_FALSE(winograd_choice(mixed).forward);
}

}  // namespace
}  // namespace renkei::compute
