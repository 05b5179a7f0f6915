#include "compute/blocked.h"

#include <gtest/gtest.h>

namespace renkei::compute {
namespace {

TEST(Blocks, AreThoseOfTheMachineWhereTheChannelsFillThem) {
  EXPECT_TRUE(preferred_block() == 8 || preferred_block() == 16);
  EXPECT_EQ(block_for(64, 16), 16);
  EXPECT_EQ(block_for(24, 16), 8);
  EXPECT_EQ(block_for(3, 16), 1);
  EXPECT_EQ(block_for(64, 8), 8);
  EXPECT_EQ(block_for(12, 8), 1);
  EXPECT_EQ(block_for(64), preferred_block());
}

TEST(Blocks, OfOneChannelAreThePlainLayout) {
  EXPECT_FALSE((ImageShape{1, 3, 5, 5, 1}.can_be_blocked()));
  EXPECT_FALSE((ImageShape{1, 24, 5, 5, 16}.can_be_blocked()));
  EXPECT_TRUE((ImageShape{1, 24, 5, 5, 8}.can_be_blocked()));
}

}  // namespace
}  // namespace renkei::compute
