// LINPACK: solve A x = b for a random dense A by LU with partial pivoting on a P x Q grid of ranks,
// and prove it by the residual. Counting and criterion are HPL's, so that numbers compare:
//
//   operations   2/3 n^3 + 3/2 n^2, whatever the algorithm did
//   residual     |A x - b| / (eps (|A| |x| + |b|) n), maximum norms, eps = 2^-53; valid below 16
//
// A is dealt out in blocks of nb x nb, cyclically over rows and columns of the grid. Each step
// factors a panel of nb columns, exchanges its rows, and updates what is right and below with a
// matrix product, in which nearly all of the time goes. The work is ScaLAPACK's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/settings.h"
#include "comm/transport/transport.h"
#include "dense/grid.h"

namespace renkei::dense {

inline constexpr double kResidualLimit = 16;

struct LinpackOptions {
  int64_t n = 1000;
  int block = 128;
  Grid grid = {};
  bool column_major = false;  // how ranks are numbered in the grid
  int threads = 1;            // of each rank
  uint64_t seed = 0;
  bool damage = false;  // spoil one entry of the solution, to see that the check works
  std::function<void(int64_t done, int64_t total)> progress = {};  // columns
};

struct LinpackResult {
  double seconds = 0;
  double gflops = 0;
  double residual = 0;
  bool passed = false;
  double product_gflops = 0;          // of all ranks at the same time, in the same run
  std::optional<double> joules = {};  // of all hosts, while solving
};

double linpack_flops(double n);

void declare_linpack_settings(Settings& settings);
// For these ranks, completed where settings are left to Renkei; `memory_bytes` is what all ranks
// together may take.
LinpackOptions linpack_options(const Settings& settings, int ranks, double memory_bytes);

// Memory that is free for the ranks of this job, over all hosts: the share that linpack.memory
// gives, of the host that has least for each of its ranks. All ranks together.
double memory_for_matrix(const Settings& settings, comm::Transport& transport);

// All ranks together; all get the same result. A usage Error where this renkei has no ScaLAPACK.
LinpackResult solve_linpack(comm::Transport& transport, const LinpackOptions& options);

}  // namespace renkei::dense
