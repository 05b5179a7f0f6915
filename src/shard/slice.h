// What a rank of a tensor group has of a parameter or buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shard/layout.h"

namespace renkei::shard {

struct Slice {
  std::vector<int64_t> sizes = {};  // of the whole
  Layout layout = {};               // whole, copied or split
  Part part = {};

  bool is_split() const { return layout.is_split() && part.parts > 1; }
  // Its gradients on the ranks of the group are shares of the sum.
  bool is_summed() const { return layout.kind == Layout::Kind::copied && part.parts > 1; }

  // The parts of the whole, in memory order, that elements [begin, begin + count) of the slice are:
  // use(first element of the whole, first of the slice, how many).
  template <typename Use>
  void for_runs(int64_t begin, int64_t count, const Use& use) const {
    if (!is_split()) return use(begin, begin, count);
    const int64_t run = run_length();
    for (int64_t at = begin; at < begin + count;) {
      const int64_t piece = at / run, skip = at % run;
      const int64_t length = std::min(run - skip, begin + count - at);
      use((piece * part.parts + part.index) * run + skip, at, length);
      at += length;
    }
  }

 private:
  int64_t run_length() const;  // elements of the whole that lie side by side
};

}  // namespace renkei::shard
