#include "comm/buffer/chunk_range.h"

#include <gtest/gtest.h>

namespace renkei::comm {
namespace {

TEST(ChunkRange, CutsABufferWithoutGapsIntoChunksThatDifferByAtMostOne) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (size_t count : {0, 1, 2, 8, 9, 10, 1000, 100003}) {
      size_t end_of_previous = 0;
      for (int r = 0; r < ranks; ++r) {
        const Range range = chunk_range(count, ranks, r);
        EXPECT_EQ(range.begin, end_of_previous);
        EXPECT_LE(range.size(), chunk_range(count, ranks, 0).size());
        EXPECT_GE(range.size() + 1, chunk_range(count, ranks, 0).size());
        end_of_previous = range.end;
      }
      EXPECT_EQ(end_of_previous, count);
    }
}

TEST(ChunkRange, CountsInSixtyFourBits) {
  const size_t count = (size_t{1} << 40) + 3;
  EXPECT_EQ(chunk_range(count, 1024, 1023).end, count);
  EXPECT_EQ(chunk_range(count, 1024, 1023).size(), size_t{1} << 30);
}

}  // namespace
}  // namespace renkei::comm
