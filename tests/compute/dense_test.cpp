#include "compute/dense.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace renkei::compute {
namespace {

std::vector<float> drawn(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// A sum of k products, one after the other.
void expect_near(const std::vector<float>& ours, const std::vector<double>& exact, int64_t k) {
  ASSERT_EQ(ours.size(), exact.size());
  const double allowed = 3e-7 * static_cast<double>(k) + 3e-6;
  for (size_t i = 0; i < ours.size(); ++i)
    ASSERT_NEAR(ours[i], exact[i], allowed * (1 + std::abs(exact[i]))) << "at " << i;
}

class Dense : public testing::TestWithParam<DenseShape> {
 protected:
  const DenseShape shape = GetParam();
  const std::vector<float> x = drawn(shape.rows * shape.inputs, 1);
  const std::vector<float> w = drawn(shape.outputs * shape.inputs, 2);
  const std::vector<float> bias = drawn(shape.outputs, 3);
  const std::vector<float> gradient = drawn(shape.rows * shape.outputs, 4);

  double at(const std::vector<float>& matrix, int64_t row, int64_t columns, int64_t column) const {
    return matrix[static_cast<size_t>(row * columns + column)];
  }
};

TEST_P(Dense, ForwardIsTheProductAndTheBias) {
  ASSERT_TRUE(shape.suits());
  for (const bool relu : {false, true}) {
    std::vector<float> y(static_cast<size_t>(shape.rows * shape.outputs), NAN);
    dense_forward(shape, x.data(), w.data(), bias.data(), relu, y.data());
    std::vector<double> exact;
    for (int64_t r = 0; r < shape.rows; ++r)
      for (int64_t o = 0; o < shape.outputs; ++o) {
        double sum = bias[static_cast<size_t>(o)];
        for (int64_t i = 0; i < shape.inputs; ++i)
          sum += at(x, r, shape.inputs, i) * at(w, o, shape.inputs, i);
        exact.push_back(relu ? std::max(sum, 0.0) : sum);
      }
    expect_near(y, exact, shape.inputs);
  }
}

TEST_P(Dense, TheGradientOfTheWeightsReplacesOrAdds) {
  std::vector<float> ours(static_cast<size_t>(shape.outputs * shape.inputs), NAN);
  std::vector<double> exact;
  for (int64_t o = 0; o < shape.outputs; ++o)
    for (int64_t i = 0; i < shape.inputs; ++i) {
      double sum = 0;
      for (int64_t r = 0; r < shape.rows; ++r)
        sum += at(gradient, r, shape.outputs, o) * at(x, r, shape.inputs, i);
      exact.push_back(sum);
    }
  dense_backward_weights(shape, x.data(), gradient.data(), Write::replace, ours.data());
  expect_near(ours, exact, shape.rows);
  dense_backward_weights(shape, x.data(), gradient.data(), Write::add, ours.data());
  for (double& value : exact) value *= 2;
  expect_near(ours, exact, shape.rows);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Dense,
                         testing::Values(DenseShape{1, 16, 1}, DenseShape{2, 16, 4},
                                         DenseShape{3, 32, 7}, DenseShape{5, 48, 6},
                                         DenseShape{6, 128, 10}, DenseShape{8, 512, 130},
                                         DenseShape{32, 512, 512}, DenseShape{64, 272, 33}));

TEST(Dense, KeepsWhatIsNotANumber) {
  const DenseShape shape{2, 16, 6};  // a whole tile of outputs, and a part
  std::vector<float> x(32, 1.0f), w(96, -1.0f), bias(6), y(12);
  x[20] = NAN;
  dense_forward(shape, x.data(), w.data(), bias.data(), true, y.data());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i >= 6) << i;
}

TEST(Dense, LeavesManyRowsAndOddWidthsToABlas) {
  EXPECT_FALSE((DenseShape{65, 16, 4}.suits()));
  EXPECT_FALSE((DenseShape{4, 20, 4}.suits()));
  EXPECT_FALSE((DenseShape{0, 16, 4}.suits()));
}

}  // namespace
}  // namespace renkei::compute
