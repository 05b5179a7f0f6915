#include "bench/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "bench/contest.h"
#include "bench/memory_bound.h"
#include "comm/choice/cost_measurement.h"

namespace renkei::bench {
namespace {

using comm::Buffer;
using comm::Candidate;
using comm::Communicator;

// The cost model is about messages. In shared memory an allreduce is two barriers and the reads and
// writes between them, whose times are measured each for itself.
std::vector<Contestant> parts_of_shared_memory(Communicator& communicator, MemoryBound& bound,
                                               size_t count, const comm::Call& call) {
  return {{"barrier", [&communicator, call] { communicator.barrier(call); }},
          {"reads and writes", [&bound, count] { bound.run(count, Buffers::shared); }}};
}

std::string reason_of(const Candidate& candidate, const ExplainedRow& row) {
  if (candidate.chosen || !candidate.reason.empty()) return candidate.reason;
  const auto mine = candidate.predicted_seconds;
  const auto of_chosen = row.chosen().predicted_us;
  if (!mine || !of_chosen) return "the model has no time for it";
  return fmt::format("predicted {:.2g} × the chosen one", *mine * 1e6 / *of_chosen);
}

ExplainedRow explain_one(Communicator& communicator, const comm::CostModel& model, Buffer buffer,
                         MemoryBound& bound, int rounds, const comm::Call& call) {
  const auto candidates = communicator.candidates(buffer, model);
  std::vector<Contestant> contestants;
  for (const Candidate& candidate : candidates)
    if (candidate.possible)
      contestants.push_back(
          {candidate.name,
           [&] { communicator.allreduce_by(candidate, buffer, comm::Reduction::sum, call); }});
  const size_t parts = contestants.size();
  for (Contestant& part : parts_of_shared_memory(communicator, bound, buffer.count, call))
    contestants.push_back(std::move(part));
  time_interleaved(communicator, contestants, rounds, call);
  const double in_shared_memory_us =
      2 * contestants[parts].median_us() + contestants[parts + 1].median_us();

  ExplainedRow row{.size_bytes = static_cast<int64_t>(buffer.bytes()),
                   .count = static_cast<int64_t>(buffer.count),
                   .candidates = {}};
  auto contestant = contestants.begin();
  for (const Candidate& candidate : candidates) {
    ExplainedCandidate explained{.algorithm = candidate.name,
                                 .segment_bytes = {},
                                 .predicted_us = {},
                                 .measured_us = {},
                                 .chosen = candidate.chosen,
                                 .reason = {}};
    if (candidate.shared_memory)
      explained.predicted_us = in_shared_memory_us;
    else if (candidate.predicted_seconds)
      explained.predicted_us = *candidate.predicted_seconds * 1e6;
    if (!candidate.shared_memory && candidate.options.segment_bytes > 0)
      explained.segment_bytes = candidate.options.segment_bytes;
    if (candidate.possible) explained.measured_us = (contestant++)->median_us();
    row.candidates.push_back(std::move(explained));
    row.candidates.back().reason = reason_of(candidate, row);
  }
  return row;
}

}  // namespace

const ExplainedCandidate& ExplainedRow::fastest() const {
  const auto time = [](const ExplainedCandidate& candidate) {
    return candidate.measured_us.value_or(std::numeric_limits<double>::infinity());
  };
  return *std::ranges::min_element(candidates, {}, time);
}

Explanation explain_choices(Communicator& communicator, const CollectivesOptions& options,
                            const std::function<void(const ExplainedRow&)>& progress) {
  const int ranks = communicator.transport().size();
  const comm::Call call{.operation = "benchmark", .timeout_seconds = options.timeout_seconds};
  // Where messages are used, the model that the choices are made by.
  Explanation explanation{.model = communicator.in_shared_memory()
                                       ? measure_cost_model(communicator.transport(), call)
                                       : communicator.cost_model(),
                          .rows = {}};
  const size_t most = count_for(options, *std::ranges::max_element(options.sizes_bytes), ranks);
  const Buffer all = communicator.allocate(most, options.dtype);
  MemoryBound bound(comm::Collective::allreduce, options.dtype, ranks, most);
  for (const int64_t size : options.sizes_bytes) {
    explanation.rows.push_back(explain_one(communicator, explanation.model,
                                           all.part(0, count_for(options, size, ranks)), bound,
                                           options.rounds, call));
    progress(explanation.rows.back());
  }
  return explanation;
}

}  // namespace renkei::bench
