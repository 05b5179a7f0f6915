// All ways to do an allreduce, and why one of them is chosen: for people who ask.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/allreduce.h"

namespace renkei::comm {

struct Candidate {
  std::string name;            // "shared memory", "ring", "hierarchical, tree between hosts"
  bool shared_memory = false;  // or else messages, with these options
  AllreduceOptions options = {};
  std::optional<double> predicted_seconds = {};
  bool chosen = false;
  std::string reason = {};  // of the chosen one; of another, what speaks against it beside time
  bool possible = true;     // with these options
};

// For messages. The chosen one, which is what resolved() says, comes first. options.model must be
// set, and outlive the candidates.
std::vector<Candidate> message_candidates(const Transport& transport, size_t bytes, DType dtype,
                                          const AllreduceOptions& options);

}  // namespace renkei::comm
