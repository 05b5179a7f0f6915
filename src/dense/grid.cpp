#include "dense/grid.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace renkei::dense {
namespace {

std::string grids_of(int ranks) {
  std::string list;
  for (int p = 1; p <= ranks; ++p)
    if (ranks % p == 0) list += fmt::format("{}{} x {}", list.empty() ? "" : ", ", p, ranks / p);
  return list;
}

}  // namespace

Grid squarest_grid(int ranks) {
  int p = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % p != 0) --p;
  return {p, ranks / p};
}

Grid choose_grid(int ranks, int p, int q) {
  if (p == 0 && q == 0) return squarest_grid(ranks);
  Grid grid{p, q};
  if (p == 0 && ranks % q == 0) grid.p = ranks / q;
  if (q == 0 && ranks % p == 0) grid.q = ranks / p;
  if (int64_t{grid.p} * grid.q == ranks) return grid;
  const auto given = [](int value) { return value == 0 ? "any" : std::to_string(value); };
  throw Error(ErrorCode::usage,
              fmt::format("a grid of {} x {} does not have {} ranks", given(p), given(q), ranks),
              fmt::format("P x Q must be the number of ranks: {}", grids_of(ranks)));
}

int64_t order_for_memory(double bytes, int block) {
  const auto order = static_cast<int64_t>(std::sqrt(bytes / sizeof(double)));
  return std::max<int64_t>(block, order / block * block);
}

}  // namespace renkei::dense
