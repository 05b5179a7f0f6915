#include "optim/layout.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::optim {
namespace {

TEST(Segments, JoinNeighboursOfAKindWithThePaddingBetweenThem) {
  const Parameter parameters[] = {{0, 10}, {16, 5}, {32, 3, false}, {48, 2}};
  const auto segments = make_segments(parameters, false);
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].begin, 0u);
  EXPECT_EQ(segments[0].end, 21u);
  EXPECT_FALSE(segments[1].decays);
  EXPECT_EQ(segments[2].begin, 48u);
  EXPECT_EQ(segments[2].end, 50u);
  EXPECT_EQ(segments[2].parameter, 3u);
}

TEST(Segments, OfSeparateParametersLeaveThePaddingOut) {
  const Parameter parameters[] = {{0, 10}, {16, 5}};
  const auto segments = make_segments(parameters, true);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].end, 10u);
  EXPECT_EQ(segments[1].begin, 16u);
}

TEST(Segments, OfOverlappingParametersAreABug) {
  const Parameter parameters[] = {{0, 10}, {9, 5}};
  EXPECT_THROW(make_segments(parameters, false), Error);
}

}  // namespace
}  // namespace renkei::optim
