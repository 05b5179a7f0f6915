#include "dense/linpack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "base/philox.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/barrier.h"
#include "dense/blas.h"
#include "dense/energy.h"
#include "dense/product.h"

namespace renkei::dense {
namespace {

constexpr int kFirst = 1, kSource = 0;  // ScaLAPACK counts from 1, ranks of the grid from 0
constexpr double kOne = 1, kMinusOne = -1;
constexpr int kProductOrder = 1600, kProductRuns = 3;

// The grid of ranks in BLACS' world, which is MPI's.
class BlacsGrid {
 public:
  explicit BlacsGrid(const LinpackOptions& options) {
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, options.column_major ? "Col" : "Row", options.grid.p, options.grid.q);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
  }
  ~BlacsGrid() { Cblacs_gridexit(context); }
  BlacsGrid(const BlacsGrid&) = delete;
  BlacsGrid& operator=(const BlacsGrid&) = delete;

  int context = 0, rows = 0, columns = 0, row = 0, column = 0;
};

// This rank's part of an n x m matrix in blocks. Entries come from a generator that is keyed by
// their place, so the matrix is the same on every grid and can be made again for the check.
class BlockMatrix {
 public:
  BlockMatrix(const BlacsGrid& grid, int n, int columns, int block)
      : n_(n), block_(block), grid_(grid) {
    local_rows_ = numroc_(&n, &block, &grid.row, &kSource, &grid.rows);
    local_columns_ = numroc_(&columns, &block, &grid.column, &kSource, &grid.columns);
    const int leading = std::max(1, local_rows_);
    int info = 0;
    descinit_(description.data(), &n, &columns, &block, &block, &kSource, &kSource, &grid.context,
              &leading, &info);
    values.resize(
        std::max<size_t>(1, static_cast<size_t>(leading) * static_cast<size_t>(local_columns_)));
  }

  // Uniform in [-0.5, 0.5). `first_column` is the place of its column 0 in the system (A | b).
  void fill(uint64_t seed, int64_t first_column) {
    for (int column = 0; column < local_columns_; ++column) {
      const auto global =
          static_cast<uint64_t>(first_column + global_of(column, grid_.column, grid_.columns));
      double* out = values.data() + static_cast<size_t>(column) * static_cast<size_t>(local_rows_);
      PhiloxBlock random{};
      int64_t drawn = -1;  // which four rows `random` is for
      for (int row = 0; row < local_rows_; ++row) {
        const int64_t place = global_of(row, grid_.row, grid_.rows);
        if (place / 4 != drawn) {
          drawn = place / 4;
          random = philox({static_cast<uint32_t>(drawn), 0, static_cast<uint32_t>(global),
                           static_cast<uint32_t>(global >> 32)},
                          seed);
        }
        out[row] = static_cast<double>(random[static_cast<size_t>(place % 4)]) * 0x1p-32 - 0.5;
      }
    }
  }

  double norm(int columns, const char* which) const {
    std::vector<double> work(static_cast<size_t>(std::max(1, local_rows_)));
    return pdlange_(which, &n_, &columns, values.data(), &kFirst, &kFirst, description.data(),
                    work.data());
  }

  bool holds_first_entry() const { return grid_.row == 0 && grid_.column == 0; }
  size_t pivots() const { return static_cast<size_t>(local_rows_ + block_); }

  std::array<int, 9> description{};
  std::vector<double> values;

 private:
  int64_t global_of(int local, int coordinate, int processes) const {
    return (int64_t{local / block_} * processes + coordinate) * block_ + local % block_;
  }

  int n_, block_, local_rows_ = 0, local_columns_ = 0;
  const BlacsGrid& grid_;
};

// What ScaLAPACK's pdgetrf does, step by step, so that someone can be told how far it is. False: a
// pivot is 0 or not a number.
bool factor(BlockMatrix& a, std::vector<int>& pivots, const LinpackOptions& options) {
  const auto n = static_cast<int>(options.n);
  bool sound = true;
  double* values = a.values.data();
  const int* description = a.description.data();
  for (int j = 1; j <= n; j += options.block) {
    const int width = std::min(options.block, n - j + 1), below = n - j + 1, left = j - 1,
              last = j + width - 1, next = j + width, right = n - next + 1;
    int info = 0;
    pdgetf2_(&below, &width, values, &j, &j, description, pivots.data(), &info);
    sound = sound && info == 0;
    if (left > 0)
      pdlaswp_("F", "R", &left, values, &j, &kFirst, description, &j, &last, pivots.data());
    if (right > 0) {
      pdlaswp_("F", "R", &right, values, &j, &next, description, &j, &last, pivots.data());
      pdtrsm_("L", "L", "N", "U", &width, &right, &kOne, values, &j, &j, description, values, &j,
              &next, description);
      pdgemm_("N", "N", &right, &right, &width, &kMinusOne, values, &next, &j, description, values,
              &j, &next, description, &kOne, values, &next, &next, description);
    }
    if (options.progress) options.progress(last, n);
  }
  return sound;
}

double sum_over_ranks(comm::Transport& transport, double mine) {
  std::vector<double> all(static_cast<size_t>(transport.size()));
  comm::all_gather(transport, std::span(&mine, 1), std::span(all), {.operation = "sum of results"});
  double sum = 0;
  for (const double value : all) sum += value;
  return sum;
}

double product_gflops(comm::Transport& transport, int threads) {
  comm::barrier(transport, {.operation = "start of the products"});
  return sum_over_ranks(transport, product_flops_per_second(Precision::f64, kProductOrder, threads,
                                                            kProductRuns)) /
         1e9;
}

bool first_of_host(const comm::Transport& transport) {
  for (int rank = 0; rank < transport.rank(); ++rank)
    if (transport.host(rank) == transport.host(transport.rank())) return false;
  return true;
}

// The energy of all hosts, unless one of them cannot tell.
std::optional<double> joules_of_hosts(comm::Transport& transport, const EnergyMeter& meter) {
  const double unknown = std::numeric_limits<double>::infinity();
  const double mine = first_of_host(transport) ? meter.joules().value_or(unknown) : 0;
  const double sum = sum_over_ranks(transport, mine);
  if (!std::isfinite(sum)) return std::nullopt;
  return sum;
}

}  // namespace

LinpackResult solve_linpack(comm::Transport& transport, const LinpackOptions& options) {
  LinpackResult result{.product_gflops = product_gflops(transport, options.threads)};
  const auto n = static_cast<int>(options.n);
  const BlacsGrid grid(options);
  BlockMatrix a(grid, n, n, options.block), b(grid, n, 1, options.block);
  a.fill(options.seed, 0);
  b.fill(options.seed, n);
  std::vector<int> pivots(a.pivots());
  const double a_norm = a.norm(n, "I"), b_norm = b.norm(1, "I");

  // A peer may need as long as it takes to fill its part.
  comm::barrier(transport, {.operation = "start of LINPACK"});
  const EnergyMeter meter;
  const double begin = now_seconds();
  const bool sound = factor(a, pivots, options);
  int info = 0;
  const int one_column = 1;
  pdgetrs_("N", &n, &one_column, a.values.data(), &kFirst, &kFirst, a.description.data(),
           pivots.data(), b.values.data(), &kFirst, &kFirst, b.description.data(), &info);
  comm::barrier(transport, {.operation = "end of LINPACK"});
  result.seconds = now_seconds() - begin;
  result.joules = joules_of_hosts(transport, meter);
  result.gflops = linpack_flops(static_cast<double>(n)) / result.seconds / 1e9;

  if (options.damage && b.holds_first_entry()) b.values[0] += 1e-6;
  const double x_norm = b.norm(1, "I");
  BlockMatrix rest(grid, n, 1, options.block);
  a.fill(options.seed, 0);
  rest.fill(options.seed, n);
  pdgemm_("N", "N", &n, &one_column, &n, &kOne, a.values.data(), &kFirst, &kFirst,
          a.description.data(), b.values.data(), &kFirst, &kFirst, b.description.data(), &kMinusOne,
          rest.values.data(), &kFirst, &kFirst, rest.description.data());
  const double error = rest.norm(1, "I");
  result.residual = error / (0x1p-53 * (a_norm * x_norm + b_norm) * n);
  result.passed = sound && result.residual < kResidualLimit;  // false for a NaN
  return result;
}

}  // namespace renkei::dense
