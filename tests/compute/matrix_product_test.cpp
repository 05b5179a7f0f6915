#include "compute/matrix_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace renkei::compute {
namespace {

std::vector<float> drawn_matrix(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// Row by row as it lies in memory, or the transposed of that.
double element(const std::vector<float>& matrix, int64_t row, int64_t column, int64_t step,
               bool transposed) {
  return matrix[static_cast<size_t>(transposed ? column * step + row : row * step + column)];
}

void expect_product(MatrixProduct product, int64_t padding) {
  product.a_step = (product.a_transposed ? product.rows : product.inner) + padding;
  product.b_step = (product.b_transposed ? product.inner : product.columns) + padding;
  const auto a =
      drawn_matrix(product.a_step * (product.a_transposed ? product.inner : product.rows), 1);
  const auto b =
      drawn_matrix(product.b_step * (product.b_transposed ? product.columns : product.inner), 2);
  std::vector<float> c(static_cast<size_t>(product.rows * product.columns),
                       std::numeric_limits<float>::quiet_NaN());  // must not be read
  matrix_product(product, a.data(), b.data(), c.data());
  for (int64_t row = 0; row < product.rows; ++row)
    for (int64_t column = 0; column < product.columns; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < product.inner; ++k) {
        const double term = element(a, row, k, product.a_step, product.a_transposed) *
                            element(b, k, column, product.b_step, product.b_transposed);
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(c[static_cast<size_t>(row * product.columns + column)], sum,
                  1e-6 * (1 + magnitude))
          << row << ", " << column;
    }
}

TEST(MatrixProduct, EqualsTheSumsOfItsDefinition) {
  struct Size {
    int64_t rows, columns, inner;
  };
  for (const Size& size :
       {Size{1, 1, 1}, {3, 5, 7}, {64, 48, 33}, {17, 130, 512}, {100, 1, 20}, {2, 3, 0}, {0, 4, 4}})
    for (const bool a : {false, true})
      for (const bool b : {false, true})
        for (const int64_t padding : {0, 3}) {
          SCOPED_TRACE(testing::Message() << size.rows << " × " << size.columns << " over "
                                          << size.inner << ", transposed " << a << b);
          expect_product({.rows = size.rows,
                          .columns = size.columns,
                          .inner = size.inner,
                          .a_transposed = a,
                          .b_transposed = b},
                         padding);
        }
}

TEST(MatrixProduct, PassesOnWhatIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {0, 0, 1, 1}, b = {nan, 1, 1, 1};
  std::vector<float> c(4);
  matrix_product({.rows = 2, .columns = 2, .inner = 2, .a_step = 2, .b_step = 2}, a.data(),
                 b.data(), c.data());
  EXPECT_TRUE(std::isnan(c[0]));
  EXPECT_EQ(c[1], 0);
  EXPECT_TRUE(std::isnan(c[2]));
  EXPECT_EQ(c[3], 2);
}

}  // namespace
}  // namespace renkei::compute
