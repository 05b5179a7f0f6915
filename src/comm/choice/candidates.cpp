#include "comm/choice/candidates.h"

#include <algorithm>

#include "base/error.h"

namespace renkei::comm {
namespace {

std::string name_with_outer(Algorithm algorithm, Algorithm outer) {
  if (algorithm != Algorithm::hierarchical) return std::string(name_of(algorithm));
  return fmt::format("hierarchical, {} between hosts", name_of(outer));
}

bool is(const Candidate& candidate, const AllreduceOptions& chosen) {
  return candidate.options.algorithm == chosen.algorithm &&
         (chosen.algorithm != Algorithm::hierarchical || candidate.options.outer == chosen.outer);
}

// The fastest that is possible by the model. Null: none is.
const Candidate* fastest(const std::vector<Candidate>& candidates) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates)
    if (candidate.possible && candidate.predicted_seconds &&
        (!best || *candidate.predicted_seconds < *best->predicted_seconds))
      best = &candidate;
  return best;
}

std::string reason_of(const Candidate& chosen, const std::vector<Candidate>& all,
                      const AllreduceOptions& options) {
  if (options.algorithm != Algorithm::automatic)
    return fmt::format("comm.algorithm asks for {}", name_of(options.algorithm));
  const Candidate* const best = fastest(all);
  if (!best || best->name == chosen.name) return "least predicted time";
  return fmt::format("predicted as good as {}, and simpler", best->name);
}

// Sums in rank order are one algorithm, which the others cannot replace.
std::vector<Candidate> reproducible_candidates(std::vector<Candidate> others,
                                               const AllreduceOptions& options) {
  for (Candidate& other : others) {
    other.options.reproducible = false;
    other.reason = "does not sum in rank order";
  }
  others.insert(others.begin(), {.name = "reproducible",
                                 .options = options,
                                 .chosen = true,
                                 .reason = "comm.reproducible asks for sums in rank order"});
  return others;
}

}  // namespace

std::vector<Candidate> message_candidates(const Transport& transport, size_t bytes, DType dtype,
                                          const AllreduceOptions& options) {
  const AllreduceOptions chosen = resolved(transport, bytes, dtype, options);
  const bool narrow = options.wire && dtype == DType::f32;
  std::vector<Candidate> all;
  for (const Prediction& prediction :
       choose(*options.model, narrow ? bytes / 2 : bytes).candidates) {
    Candidate candidate{.name = name_with_outer(prediction.algorithm, prediction.outer),
                        .options = options,
                        .predicted_seconds = prediction.seconds};
    candidate.options.algorithm = prediction.algorithm;
    candidate.options.outer = prediction.outer;
    if (options.segment_bytes == 0) candidate.options.segment_bytes = prediction.segment_bytes;
    const Algorithm on_wire =
        prediction.algorithm == Algorithm::hierarchical ? prediction.outer : prediction.algorithm;
    candidate.possible = !narrow || on_wire == Algorithm::ring;
    if (!candidate.possible)
      candidate.reason = fmt::format("does not know {} on the wire", name_of(*options.wire));
    all.push_back(std::move(candidate));
  }
  if (options.reproducible) return reproducible_candidates(std::move(all), options);

  // One that was asked for by name may make no sense to the model, which then has no time for it.
  auto found = std::ranges::find_if(all, [&](const Candidate& c) { return is(c, chosen); });
  if (found == all.end())
    found = all.insert(
        all.end(), {.name = name_with_outer(chosen.algorithm, chosen.outer), .options = chosen});
  found->chosen = true;
  found->reason = reason_of(*found, all, options);
  std::rotate(all.begin(), found, found + 1);
  return all;
}

}  // namespace renkei::comm
