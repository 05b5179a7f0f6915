#include "dense/grid.h"

#include "base/error.h"

namespace renkei::dense {
namespace {

TEST(Grid, IsAsSquareAsTheRanksAllowWithFewRows) {
  const std::vector<std::array<int, 3>> cases{{1, 1, 1}, {2, 1, 2},  {4, 2, 2},     {6, 2, 3},
                                              {7, 1, 7}, {12, 3, 4}, {1024, 32, 32}};
  for (const auto& [ranks, p, q] : cases) {
    const Grid grid = squarest_grid(ranks);
    EXPECT_EQ(grid.p, p) << ranks;
    EXPECT_EQ(grid.q, q) << ranks;
  }
}

TEST(Grid, CompletesWhatIsGivenAndRefusesWhatDoesNotFit) {
  EXPECT_EQ(choose_grid(6, 3, 0).q, 2);
  EXPECT_EQ(choose_grid(6, 0, 6).p, 1);
  EXPECT_EQ(choose_grid(6, 2, 3).q, 3);
  for (const auto& [p, q] : {std::pair{4, 0}, {0, 5}, {2, 2}, {6, 6}}) {
    try {
      choose_grid(6, p, q);
      FAIL() << p << " x " << q;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::usage);
      EXPECT_THAT(error.hint, testing::HasSubstr("1 x 6, 2 x 3, 3 x 2, 6 x 1"));
    }
  }
}

TEST(Grid, TheOrderFillsTheMemoryWithWholeBlocks) {
  const int64_t order = order_for_memory(8e9, 128);
  EXPECT_EQ(order % 128, 0);
  EXPECT_LE(8 * order * order, 8'000'000'000);
  EXPECT_GT(8 * (order + 128) * (order + 128), 8'000'000'000);
  EXPECT_EQ(order_for_memory(10, 64), 64);
}

}  // namespace
}  // namespace renkei::dense
