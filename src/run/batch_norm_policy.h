// Whose statistics batch normalisation uses, when many ranks train together.
#pragma once

#include <functional>
#include <span>

namespace renkei::run {

enum class BatchNormMode {
  rank,          // each rank normalises by its own samples; running means are averaged at the end
  synchronised,  // all ranks together: as if one rank had all samples
  last,          // as rank, but without moving averages: those of the last batch, averaged
};

[[noreturn]] void refuse_single_values();

struct BatchNormPolicy {
  BatchNormMode mode = BatchNormMode::rank;
  // Adds up over all ranks; for `synchronised`.
  std::function<void(std::span<double>)> sum_over_ranks = {};
  // One value of a channel has no variance. PyTorch refuses it, and so does training; measuring an
  // operation with one sample does not.
  bool refuses_single = false;

  void check_values(double of_a_channel) const {
    if (refuses_single && of_a_channel <= 1) refuse_single_values();
  }
};

}  // namespace renkei::run
