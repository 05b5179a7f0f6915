#include "optim/square_sum.h"

#include <gtest/gtest.h>

#include <cmath>

namespace renkei::optim {
namespace {

TEST(SquareSum, IsTheValueOfItsLimbs) {
  EXPECT_EQ(SquareSum().value(), 0);
  EXPECT_EQ((SquareSum{.limbs = {1, 0, 0}}.value()), 16);
  EXPECT_EQ((SquareSum{.limbs = {0, int64_t{1} << 36, 0}}.value()), 1);
  EXPECT_EQ((SquareSum{.limbs = {0, 0, 3}}.value()), 0x3p-76);
  EXPECT_EQ((SquareSum{.limbs = {1, int64_t{9} << 36, 0}}.norm()), 5);
}

TEST(SquareSum, CarriesToOneSpellingOfASum) {
  // 2 - 2^-20, in two ways.
  SquareSum a{.limbs = {0, int64_t{2} << 36, -(int64_t{1} << 36) * (int64_t{1} << 20)}};
  SquareSum b{.limbs = {1, -(int64_t{14} << 36), -(int64_t{1} << 56)}};
  EXPECT_EQ(a.value(), b.value());
  a.carry();
  b.carry();
  EXPECT_EQ(a, b);
}

TEST(SquareSum, ThatPassesTheLimitIsInfinite) {
  const SquareSum large{.limbs = {(int64_t{1} << 52) + 1, 0, 0}};
  EXPECT_TRUE(large.finite());
  SquareSum twice = large;
  twice += large;
  EXPECT_FALSE(twice.finite());
  twice += SquareSum();
  EXPECT_TRUE(std::isinf(twice.norm()));
  // Added up by an allreduce, which does not carry.
  EXPECT_FALSE((SquareSum{.limbs = {int64_t{1} << 60, 0, 0}}.finite()));
}

}  // namespace
}  // namespace renkei::optim
