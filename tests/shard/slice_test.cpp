#include "shard/slice.h"

#include <gtest/gtest.h>

#include <numeric>

namespace renkei::shard {
namespace {

// Elements of a tensor that a slice has, in its order, found by counting.
std::vector<int64_t> elements(const Slice& slice) {
  int64_t inner = 1, outer = 1;
  const auto dim = static_cast<size_t>(slice.layout.dim);
  for (size_t d = 0; d < slice.sizes.size(); ++d)
    if (d != dim) (d < dim ? outer : inner) *= slice.sizes[d];
  const int64_t size = slice.sizes[dim], block = size / slice.layout.blocks,
                part = block / slice.part.parts;
  std::vector<int64_t> list;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < size; ++i)
      if (i % block / part == slice.part.index)
        for (int64_t e = 0; e < inner; ++e) list.push_back((o * size + i) * inner + e);
  return list;
}

std::vector<int64_t> by_runs(const Slice& slice, int64_t begin, int64_t count) {
  std::vector<int64_t> list;
  int64_t expected = begin;
  slice.for_runs(begin, count, [&](int64_t whole, int64_t here, int64_t length) {
    EXPECT_EQ(here, expected);
    EXPECT_GT(length, 0);
    for (int64_t i = 0; i < length; ++i) list.push_back(whole + i);
    expected = here + length;
  });
  return list;
}

TEST(Slice, RunsAreTheElementsOfThePartWhateverTheRange) {
  const std::vector<int64_t> sizes{6, 12, 5};
  for (int dim = 0; dim < 2; ++dim)
    for (const int64_t blocks : {1, 3})
      for (const int parts : {1, 2})
        for (int index = 0; index < parts; ++index) {
          const Slice slice{.sizes = sizes, .layout = split(dim, blocks), .part = {parts, index}};
          const std::vector<int64_t> all = elements(slice);
          const auto count = static_cast<int64_t>(all.size());
          EXPECT_EQ(by_runs(slice, 0, count), all);
          for (const int64_t begin : {int64_t{1}, count / 3})
            EXPECT_EQ(by_runs(slice, begin, count / 2),
                      std::vector<int64_t>(all.begin() + begin, all.begin() + begin + count / 2));
        }
}

TEST(Slice, PartsTogetherAreTheWhole) {
  std::vector<int64_t> all;
  for (int index = 0; index < 4; ++index)
    for (const int64_t element :
         by_runs({.sizes = {3, 16}, .layout = split(1, 2), .part = {4, index}}, 0, 12))
      all.push_back(element);
  std::ranges::sort(all);
  std::vector<int64_t> expected(48);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

}  // namespace
}  // namespace renkei::shard
