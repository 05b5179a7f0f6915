// The front of all allreduces: one call, the algorithm is an option. Each has its own file, with
// its cost and the order in which it sums.
#pragma once

#include <optional>
#include <vector>

#include "comm/agreement.h"
#include "comm/allreduce/hierarchical.h"
#include "comm/buffer/reduce.h"
#include "comm/choice/cost_model.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

// The same on all ranks, but for inside and own_chunk_only, in which hosts may differ.
struct AllreduceOptions {
  Algorithm algorithm = Algorithm::automatic;
  const CostModel* model = nullptr;  // for automatic; null: the defaults of CostModel
  size_t segment_bytes = 0;          // 0: by the model

  std::vector<int> ring_order = {};  // for ring and torus, and of hosts; empty: by rank
  int torus_columns = 0;             // 0: as square as possible

  // Of the hierarchical one; automatic is ring inside and the model's choice outside.
  Algorithm inner = Algorithm::automatic;
  Algorithm outer = Algorithm::automatic;
  InsideHost* inside = nullptr;  // null: inner, over messages

  // f16 or bf16 between ranks (hierarchical: between hosts) for f32 buffers; others travel as they
  // are. Needs ring or hierarchical with a ring outside, which automatic then chooses. See wire.h.
  std::optional<DType> wire = std::nullopt;

  // The same bits for any algorithm, topology and layout of hosts (reproducible.h); the algorithm
  // does not count then, and wire is refused.
  bool reproducible = false;

  // Of the result, each rank needs the chunk that it has among the ranks of its host only:
  // chunk_range(count, ranks of the host, its number there). The hierarchical one then ends there.
  bool own_chunk_only = false;

  Check check = Check::agreement;
};

// Replaces every rank's buffer by the reduction of all ranks' buffers, element by element. All
// ranks end with the same bits.
void allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call = {},
               const AllreduceOptions& options = {});

// The options with nothing automatic left in them: what an allreduce of so many bytes would do.
AllreduceOptions resolved(const Transport& transport, size_t bytes, DType dtype,
                          const AllreduceOptions& options);

}  // namespace renkei::comm
