// Why is an allreduce done the way it is, and was that right? Every way that there would be, with
// what it was predicted to take and what it takes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/collectives.h"
#include "comm/communicator.h"

namespace renkei::bench {

struct ExplainedCandidate {
  std::string algorithm;
  std::optional<size_t> segment_bytes;  // of messages
  std::optional<double> predicted_us;   // by the cost model; none where it has no formula
  std::optional<double> measured_us;    // none where the options rule the candidate out
  bool chosen = false;
  std::string reason;  // why it was chosen, or what speaks against it
};

struct ExplainedRow {
  int64_t size_bytes = 0;
  int64_t count = 0;
  std::vector<ExplainedCandidate> candidates;  // the chosen one first

  const ExplainedCandidate& chosen() const { return candidates.front(); }
  const ExplainedCandidate& fastest() const;  // as measured
};

struct Explanation {
  comm::CostModel model;  // of the messages
  std::vector<ExplainedRow> rows;
};

// For an allreduce. Called by all ranks; all get the same.
Explanation explain_choices(comm::Communicator& communicator, const CollectivesOptions& options,
                            const std::function<void(const ExplainedRow&)>& progress);

}  // namespace renkei::bench
