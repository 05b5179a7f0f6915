#include "comm/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tests/comm/patterns.h"

namespace renkei::comm {
namespace {

template <typename T>
class Reduce : public testing::Test {};
using Numbers = testing::Types<float, double, int64_t>;
TYPED_TEST_SUITE(Reduce, Numbers);

TYPED_TEST(Reduce, CombinesElementByElement) {
  for (const size_t count : {0, 1, 7, 1000})
    for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min}) {
      auto into = pattern<TypeParam>(0, count);
      const auto from = pattern<TypeParam>(1, count);
      reduce<TypeParam>(into, from, reduction);
      EXPECT_EQ(into, reduced_pattern<TypeParam>(2, count, reduction));
    }
}

TYPED_TEST(Reduce, RefusesBuffersOfDifferentLengths) {
  std::vector<TypeParam> into(3), from(4);
  EXPECT_THROW(reduce<TypeParam>(into, from, Reduction::sum), Error);
}

TEST(ReduceOfNumbers, NeverHidesANaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min}) {
    std::vector<double> into{nan, 1, nan};
    reduce<double>(into, std::vector<double>{1, nan, nan}, reduction);
    for (const double value : into) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(ReduceOfIntegers, WrapsAround) {
  std::vector<int64_t> into{std::numeric_limits<int64_t>::max()};
  reduce<int64_t>(into, std::vector<int64_t>{1}, Reduction::sum);
  EXPECT_EQ(into[0], std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace renkei::comm
