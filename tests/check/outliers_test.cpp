#include "check/outliers.h"

namespace renkei::check {
namespace {

TEST(Outliers, TheMedianAndTheSpreadIgnoreABadPart) {
  EXPECT_DOUBLE_EQ(median({}), 0);
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(spread({10, 11, 12, 13, 1000}), 1.4826);
}

TEST(Outliers, OneSlowPartOfFourIsNamedAndNoOther) {
  EXPECT_EQ(slow_ones({100, 99, 50, 101}, 0.2), std::vector<size_t>{2});
  EXPECT_EQ(slow_ones({100, 99, 79, 101}, 0.2), std::vector<size_t>{2});
  EXPECT_TRUE(slow_ones({100, 99, 90, 101}, 0.2).empty());
}

TEST(Outliers, ASpreadThatAllHaveIsNoFault) {
  EXPECT_TRUE(slow_ones({100, 80, 120, 70, 130, 60}, 0.2).empty());
  EXPECT_TRUE(slow_ones({5}, 0.2).empty());
  EXPECT_TRUE(slow_ones({}, 0.2).empty());
}

}  // namespace
}  // namespace renkei::check
