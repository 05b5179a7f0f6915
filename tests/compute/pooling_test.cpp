#include "compute/pooling.h"

#include <gtest/gtest.h>

#include "tests/compute/images.h"

namespace renkei::compute {
namespace {

struct Reference {
  std::vector<double> output, input_gradient;
};

// The definition, in plain layout.
Reference reference(const PoolingShape& s, const std::vector<float>& input,
                    const std::vector<float>& gradient) {
  const ImageShape in = s.input(), out = s.output();
  Reference r{std::vector<double>(gradient.size()), std::vector<double>(input.size())};
  for (int64_t image = 0; image < s.batch * s.channels; ++image)
    for (int64_t place = 0; place < out.pixels(); ++place) {
      const int64_t y = place / out.width * s.stride - s.padding;
      const int64_t x = place % out.width * s.stride - s.padding;
      const auto o = static_cast<size_t>(image * out.pixels() + place);
      double best = -INFINITY, sum = 0;
      size_t where = 0;
      std::vector<size_t> inside;
      int64_t padded = 0;
      for (int64_t i = y; i < y + s.kernel; ++i)
        for (int64_t j = x; j < x + s.kernel; ++j) {
          padded += i < in.height + s.padding && j < in.width + s.padding;
          if (i < 0 || i >= in.height || j < 0 || j >= in.width) continue;
          inside.push_back(static_cast<size_t>(image * in.pixels() + i * in.width + j));
          const auto value = static_cast<double>(input[inside.back()]);
          sum += value;
          if (value > best) best = value, where = inside.back();
        }
      const auto area = static_cast<double>(s.count_padding ? padded : std::ssize(inside));
      r.output[o] = s.max ? best : sum / area;
      if (s.max) r.input_gradient[where] += static_cast<double>(gradient[o]);
      if (!s.max)
        for (const size_t i : inside)
          r.input_gradient[i] += static_cast<double>(gradient[o]) / area;
    }
  return r;
}

class Pooling : public testing::TestWithParam<std::tuple<PoolingShape, int64_t>> {};

TEST_P(Pooling, EqualsItsDefinitionForwardAndBackward) {
  PoolingShape s = std::get<0>(GetParam());
  s.block = std::get<1>(GetParam());
  const ImageShape in = s.input(), out = s.output();
  const std::vector<float> input = random_values(in.count(), 1);
  const std::vector<float> gradient = random_values(out.count(), 2);
  const Reference expected = reference(s, input, gradient);

  std::vector<std::byte> workspace(pooling_workspace_bytes(s));
  std::vector<float> output(gradient.size()), input_gradient(input.size(), 7.0f);
  pooling_forward(s, to_blocked(in, input).data(), output.data(), workspace.data());
  EXPECT_LT(relative_error(to_plain(out, output), expected.output), 1e-6);
  pooling_backward(s, to_blocked(out, gradient).data(), workspace.data(), input_gradient.data());
  EXPECT_LT(relative_error(to_plain(in, input_gradient), expected.input_gradient), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Pooling,
    testing::Combine(testing::Values(PoolingShape{2, 16, 12, 12, 3, 2, 1, true},
                                     PoolingShape{2, 16, 9, 7, 3, 2, 0, true},
                                     PoolingShape{1, 32, 8, 8, 2, 2, 0, true},
                                     PoolingShape{1, 16, 8, 9, 3, 2, 0, true, true},
                                     PoolingShape{1, 16, 7, 7, 2, 3, 1, true, true},
                                     PoolingShape{1, 16, 20, 20, 17, 1, 8, true},
                                     PoolingShape{2, 16, 9, 7, 3, 1, 1, false},
                                     PoolingShape{2, 16, 9, 7, 3, 2, 1, false, true},
                                     PoolingShape{2, 16, 9, 8, 3, 2, 1, false, true, false}),
                     testing::Values(8, 16)));

TEST(Pooling, OfWhatIsNotANumberIsNone) {
  PoolingShape s{1, 8, 4, 4, 2, 2, 0, true};
  std::vector<float> input(128, 1.0f), output(32), input_gradient(128);
  const std::vector<float> gradient(32, 3.0f);
  input[8 * 1 + 5] = NAN;  // the second pixel of the first window
  std::vector<std::byte> workspace(pooling_workspace_bytes(s));
  pooling_forward(s, input.data(), output.data(), workspace.data());
  pooling_backward(s, gradient.data(), workspace.data(), input_gradient.data());
  for (size_t i = 0; i < output.size(); ++i) EXPECT_EQ(std::isnan(output[i]), i == 5) << i;
  EXPECT_EQ(input_gradient[8 * 1 + 5], 3.0f);
  EXPECT_EQ(input_gradient[8 * 0 + 5], 0.0f);
  EXPECT_EQ(input_gradient[8 * 0 + 4], 3.0f);  // of equal values, the first

  s.max = false;
  pooling_forward(s, input.data(), output.data(), nullptr);
  for (size_t i = 0; i < output.size(); ++i) EXPECT_EQ(std::isnan(output[i]), i == 5) << i;
}

}  // namespace
}  // namespace renkei::compute
