// The sizes of a batch obey one equation,
//
//   global batch = micro-batch × accumulation × ranks
//
// where a rank computes `accumulation` micro-batches one after the other before the update. The
// user gives what matters to them; the rest is inferred, and the equation is printed. A batch that
// does not divide is dealt out as evenly as can be: some micro-batches have one sample less.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace renkei::plan {

struct BatchRequest {
  std::optional<int64_t> global;
  std::optional<int64_t> per_device;  // micro-batch × accumulation
  std::optional<int64_t> micro;
  std::optional<int64_t> accumulation;  // micro-batches per step and rank
};

struct BatchSizes {
  int64_t global = 1;
  int64_t micro = 1;
  int64_t accumulation = 1;
  int ranks = 1;

  std::string equation() const;  // "batch 64 = micro-batch 16 × 2 micro-batches × 2 ranks"
};

// Throws a usage Error that says what would work when the request has no whole solution.
BatchSizes infer_batch_sizes(const BatchRequest& request, int ranks);

}  // namespace renkei::plan
