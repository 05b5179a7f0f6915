#include "compute/pooling.h"

#include <gtest/gtest.h>

#include "tests/compute/images.h"

namespace renkei::compute {
namespace {

class Pooling : public testing::TestWithParam<PoolingShape> {};

TEST_P(Pooling, EqualsItsDefinitionForwardAndBackward) {
  const PoolingShape s = GetParam();
  const ImageShape in = s.input(), out = s.output();
  const std::vector<float> input = random_values(in.count(), 1);
  const std::vector<float> gradient = random_values(out.count(), 2);
  std::vector<double> expected(static_cast<size_t>(out.count())), expected_gradient(input.size());
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t y = 0; y < out.height; ++y)
        for (int64_t x = 0; x < out.width; ++x) {
          const size_t o = plain_index(out, n, c, y * out.width + x);
          const double area = static_cast<double>(s.kernel * s.kernel);
          double best = -1e9, sum = 0;
          size_t where = 0;
          for (int64_t i = y * s.stride - s.padding; i < y * s.stride - s.padding + s.kernel; ++i)
            for (int64_t j = x * s.stride - s.padding; j < x * s.stride - s.padding + s.kernel;
                 ++j) {
              if (i < 0 || i >= in.height || j < 0 || j >= in.width) continue;
              const size_t at = plain_index(in, n, c, i * in.width + j);
              const auto value = static_cast<double>(input[at]);
              sum += value;
              if (!s.max) expected_gradient[at] += static_cast<double>(gradient[o]) / area;
              if (value > best) best = value, where = at;
            }
          expected[o] = s.max ? best : sum / area;
          if (s.max) expected_gradient[where] += static_cast<double>(gradient[o]);
        }

  std::vector<std::byte> workspace(pooling_workspace_bytes(s));
  std::vector<float> output(expected.size()), input_gradient(input.size());
  pooling_forward(s, to_blocked(in, input).data(), output.data(), workspace.data());
  EXPECT_LT(relative_error(to_plain(out, output), expected), 1e-6);
  pooling_backward(s, to_blocked(out, gradient).data(), workspace.data(), input_gradient.data());
  EXPECT_LT(relative_error(to_plain(in, input_gradient), expected_gradient), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Pooling,
                         testing::Values(PoolingShape{2, 16, 12, 12, 3, 2, 1, true},
                                         PoolingShape{2, 8, 9, 7, 3, 2, 0, true},
                                         PoolingShape{1, 16, 8, 8, 2, 2, 0, true},
                                         PoolingShape{2, 8, 9, 7, 3, 1, 1, false}));

}  // namespace
}  // namespace renkei::compute
