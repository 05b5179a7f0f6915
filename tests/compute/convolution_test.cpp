#include "compute/convolution.h"

#include <gtest/gtest.h>

#include "tests/compute/images.h"
#include "tests/compute/reference_convolution.h"

namespace renkei::compute {
namespace {

// Relative to the largest value; sums of a few thousand products in single precision.
constexpr double kBound = 5e-6;

// batch, in, height, width, out, kernel h, w, stride h, w, padding h, w, dilation h, w, groups
const ConvolutionShape kShapes[] = {
    {2, 3, 13, 13, 16, 7, 7, 2, 2, 3, 3},    // pictures: 3 channels, plain
    {2, 3, 47, 47, 64, 11, 11, 4, 4, 2, 2},  // AlexNet's first layer
    {2, 3, 48, 48, 64, 3, 3, 1, 1, 1, 1},    // VGG's first layer
    {2, 16, 9, 9, 32, 1, 1, 1, 1, 0, 0},     // 1 × 1
    {1, 16, 8, 8, 32, 1, 1, 2, 2, 0, 0},     // 1 × 1 with stride
    {2, 16, 7, 9, 16, 3, 3, 1, 1, 1, 1},     // not square
    {2, 16, 11, 11, 16, 3, 3, 2, 2, 1, 1},   // stride
    {2, 16, 11, 11, 16, 3, 3, 2, 1, 1, 1},   // strides that differ
    {1, 16, 9, 9, 16, 1, 7, 1, 1, 0, 3},     // a row
    {1, 16, 9, 9, 16, 7, 1, 1, 1, 3, 0},     // a column
    {1, 16, 9, 9, 16, 5, 5, 1, 1, 2, 2},
    {2, 64, 2, 2, 64, 3, 3, 1, 1, 1, 1},            // the end of a network for small images
    {1, 16, 11, 11, 16, 3, 3, 1, 1, 2, 2, 2, 2},    // dilated
    {2, 32, 13, 12, 16, 3, 3, 2, 1, 3, 2, 3, 2},    // dilations that differ, with strides
    {2, 32, 9, 9, 64, 3, 3, 1, 1, 1, 1, 1, 1, 2},   // groups of whole blocks
    {2, 64, 9, 9, 64, 3, 3, 2, 2, 1, 1, 1, 1, 16},  // groups of 4, as in ResNeXt
    {1, 48, 8, 8, 16, 1, 1, 1, 1, 0, 0, 1, 1, 2},   // groups of 24 and 8
    {2, 32, 9, 7, 32, 3, 3, 1, 1, 1, 1, 1, 1, 32},  // depthwise
    {2, 32, 9, 9, 32, 5, 5, 2, 2, 2, 2, 1, 1, 32},  // depthwise with stride
    {1, 32, 9, 9, 32, 3, 3, 1, 1, 2, 2, 2, 2, 32},  // depthwise, dilated
    {1, 16, 9, 9, 32, 3, 3, 1, 1, 1, 1, 1, 1, 16},  // two filters for each channel
};

struct Blocks {
  int64_t in, out;
};

ConvolutionShape with_blocks(ConvolutionShape shape, Blocks blocks) {
  shape.in_block = blocks.in;
  shape.out_block = blocks.out;
  return shape;
}

class Convolutions : public testing::TestWithParam<std::tuple<ConvolutionShape, Blocks>> {
 protected:
  ConvolutionShape shape = with_blocks(std::get<0>(GetParam()), std::get<1>(GetParam()));
  std::vector<float> input = random_values(shape.input().count(), 1);
  std::vector<float> weights = random_values(shape.weights(), 2);
  std::vector<float> gradient = random_values(shape.output().count(), 3);
  std::vector<float> laid_out = shape.input_is_blocked() ? to_blocked(shape.input(), input) : input;
  Convolution& convolution = convolution_for(shape);
};

TEST_P(Convolutions, ForwardEqualsTheDefinition) {
  std::vector<float> output(static_cast<size_t>(shape.output().count()));
  convolution.forward(laid_out.data(), weights.data(), nullptr, false, output.data());
  EXPECT_LT(
      relative_error(to_plain(shape.output(), output), reference_forward(shape, input, weights)),
      kBound);
}

TEST_P(Convolutions, ForwardAddsTheBiasAndCutsNegatives) {
  const std::vector<float> bias = random_values(shape.out_channels, 4);
  std::vector<float> output(static_cast<size_t>(shape.output().count()));
  convolution.forward(laid_out.data(), weights.data(), bias.data(), true, output.data());
  std::vector<double> expected = reference_forward(shape, input, weights);
  const auto pixels = static_cast<size_t>(shape.output().pixels());
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::max(0.0, expected[i] + static_cast<double>(bias[i / pixels % bias.size()]));
  EXPECT_LT(relative_error(to_plain(shape.output(), output), expected), kBound);
}

TEST_P(Convolutions, BackwardEqualsTheDefinition) {
  const ConvolutionGradients expected = reference_backward(shape, input, weights, gradient);
  const std::vector<float> blocked = to_blocked(shape.output(), gradient);

  std::vector<float> weight_gradient(weights.size(), 1.0f);
  convolution.backward_weights(laid_out.data(), blocked.data(), Write::replace,
                               weight_gradient.data());
  EXPECT_LT(relative_error(weight_gradient, expected.weights), kBound);
  convolution.backward_weights(laid_out.data(), blocked.data(), Write::add, weight_gradient.data());
  for (float& value : weight_gradient) value /= 2;
  EXPECT_LT(relative_error(weight_gradient, expected.weights), kBound);

  if (!shape.input_is_blocked()) return;  // pictures have no gradient
  std::vector<float> input_gradient(input.size());
  convolution.backward_input(blocked.data(), weights.data(), input_gradient.data());
  EXPECT_LT(relative_error(to_plain(shape.input(), input_gradient), expected.input), kBound);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Convolutions,
                         testing::Combine(testing::ValuesIn(kShapes),
                                          testing::Values(Blocks{8, 8}, Blocks{16, 16},
                                                          Blocks{8, 16})));

// Channels that do not fill blocks of 16, as block_for() lays them out: MobileNet's 24 beside 32.
INSTANTIATE_TEST_SUITE_P(OddChannels, Convolutions,
                         testing::Combine(testing::Values(ConvolutionShape{2, 16, 9, 9, 24, 1, 1},
                                                          ConvolutionShape{2, 16, 7, 9, 24, 3, 3, 1,
                                                                           1, 1, 1}),
                                          testing::Values(Blocks{8, 8}, Blocks{16, 8})));
INSTANTIATE_TEST_SUITE_P(
    OddInputs, Convolutions,
    testing::Combine(testing::Values(ConvolutionShape{2, 8, 7, 9, 16, 3, 3, 1, 1, 1, 1},
                                     ConvolutionShape{1, 24, 9, 9, 32, 5, 5, 2, 2, 2, 2}),
                     testing::Values(Blocks{8, 8}, Blocks{8, 16})));
INSTANTIATE_TEST_SUITE_P(OddDepthwise, Convolutions,
                         testing::Combine(testing::Values(ConvolutionShape{2, 24, 9, 9, 24, 3, 3, 1,
                                                                           1, 1, 1, 1, 1, 24}),
                                          testing::Values(Blocks{8, 8})));

TEST(Convolutions, KeepWhatIsNotANumber) {
  const ConvolutionShape shape{1, 16, 5, 5, 16, 1, 1};
  std::vector<float> input = random_values(shape.input().count(), 1), output(input.size());
  input[0] = NAN;
  const std::vector<float> weights = random_values(shape.weights(), 2);
  convolution_for(shape).forward(input.data(), weights.data(), nullptr, true, output.data());
  EXPECT_TRUE(std::isnan(output[0]));
  EXPECT_FALSE(std::isnan(output[8]));  // the next pixel
}

}  // namespace
}  // namespace renkei::compute
