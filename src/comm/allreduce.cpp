#include "comm/allreduce.h"

#include "base/error.h"
#include "comm/allreduce/halving_doubling.h"
#include "comm/allreduce/reproducible.h"
#include "comm/allreduce/ring.h"
#include "comm/allreduce/torus.h"
#include "comm/allreduce/tree.h"
#include "comm/allreduce/wire.h"
#include "comm/choice/cost_measurement.h"
#include "comm/choice/topology.h"
#include "comm/collectives/exchange.h"
#include "comm/transport/sub_transport.h"

namespace renkei::comm {
namespace {

bool travels_narrow(DType dtype, const AllreduceOptions& options) {
  return options.wire && dtype == DType::f32;
}

void refuse(const std::string& what, const std::string& hint) {
  throw Error(ErrorCode::usage, what, hint);
}

void check_options(DType dtype, const AllreduceOptions& options) {
  if (options.wire && *options.wire != DType::f16 && *options.wire != DType::bf16)
    refuse(fmt::format("f32 cannot travel as {}", name_of(*options.wire)), "choose f16 or bf16");
  if (options.wire && options.reproducible)
    refuse("a reproducible allreduce cannot use 16 bits on the wire",
           "their rounding depends on how the buffer is cut; switch one of the two off");
  for (const Algorithm level : {options.inner, options.outer})
    if (level == Algorithm::hierarchical)
      refuse("hierarchical inside hierarchical", "choose another inner and outer algorithm");
  if (!travels_narrow(dtype, options)) return;
  const Algorithm on_wire =
      options.algorithm == Algorithm::hierarchical ? options.outer : options.algorithm;
  const bool can = on_wire == Algorithm::automatic || on_wire == Algorithm::ring ||
                   on_wire == Algorithm::hierarchical;
  if (!can)
    refuse(fmt::format("{} does not know 16 bits on the wire", name_of(on_wire)),
           "choose ring, or hierarchical with ring outside");
}

std::vector<std::vector<int>> hosts_of(const Transport& transport,
                                       const std::vector<int>& ring_order) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < transport.size(); ++rank) hosts.push_back(transport.host(rank));
  return ranks_by_host(checked_order(ring_order, transport.size()), hosts);
}

void run(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
         const AllreduceOptions& options);

void run_hierarchical(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                      const AllreduceOptions& options) {
  const auto with = [&](Algorithm algorithm, std::optional<DType> wire) -> AllreduceFunction {
    return [=, segment_bytes = options.segment_bytes](Transport& t, Buffer b, Reduction how,
                                                      const Call& c) {
      run(t, b, how, c, {.algorithm = algorithm, .segment_bytes = segment_bytes, .wire = wire});
    };
  };
  const AllreduceFunction outer = with(options.outer, options.wire);
  const auto by_host = hosts_of(transport, options.ring_order);
  if (options.inside)
    return hierarchical_allreduce(transport, *options.inside, by_host, buffer, reduction, outer,
                                  !options.own_chunk_only, call);
  SubTransport host_ranks(transport, local_ranks(transport), channels::kInsideHost);
  const auto inside = inside_host_by_messages(
      host_ranks, options.inner == Algorithm::ring ? nullptr : with(options.inner, std::nullopt),
      options.segment_bytes);
  hierarchical_allreduce(transport, *inside, by_host, buffer, reduction, outer,
                         !options.own_chunk_only, call);
}

// Nothing is automatic here.
void run(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
         const AllreduceOptions& options) {
  const RingOptions ring{.order = options.ring_order, .segment_bytes = options.segment_bytes};
  switch (options.algorithm) {
    case Algorithm::automatic:
    case Algorithm::ring:
      if (travels_narrow(buffer.dtype, options))
        return wire_ring_allreduce(transport, buffer, reduction, *options.wire, call, ring);
      return ring_allreduce(transport, buffer, reduction, call, ring);
    case Algorithm::halving_doubling:
      return halving_doubling_allreduce(transport, buffer, reduction, call, options.segment_bytes);
    case Algorithm::tree:
      return tree_allreduce(transport, buffer, reduction, call, options.segment_bytes);
    case Algorithm::torus:
      return torus_allreduce(transport, buffer, reduction, call,
                             {.columns = options.torus_columns,
                              .order = options.ring_order,
                              .segment_bytes = options.segment_bytes});
    case Algorithm::hierarchical:
      return run_hierarchical(transport, buffer, reduction, call, options);
  }
}

// What must be the same on all ranks beside the call itself.
uint32_t variant_of(const AllreduceOptions& options) {
  std::vector<size_t> values = {static_cast<size_t>(options.algorithm),
                                static_cast<size_t>(options.inner),
                                static_cast<size_t>(options.outer),
                                options.segment_bytes,
                                static_cast<size_t>(options.torus_columns),
                                options.wire ? 1 + static_cast<size_t>(*options.wire) : 0,
                                options.reproducible};
  for (const int rank : options.ring_order) values.push_back(static_cast<size_t>(rank));
  return hash_of(values);
}

}  // namespace

AllreduceOptions resolved(const Transport& transport, size_t bytes, DType dtype,
                          const AllreduceOptions& options) {
  check_options(dtype, options);
  AllreduceOptions result = options;
  if (options.inner == Algorithm::automatic) result.inner = Algorithm::ring;
  if (options.reproducible) result.algorithm = Algorithm::ring;
  const bool narrow = travels_narrow(dtype, options);
  const Choice choice = choose(options.model ? *options.model : cost_model_for(transport),
                               narrow ? bytes / 2 : bytes);
  for (const Prediction& candidate : choice.candidates) {
    const bool ring_outside = candidate.outer == Algorithm::ring;
    if (result.algorithm != Algorithm::automatic && result.algorithm != candidate.algorithm)
      continue;
    if (options.outer != Algorithm::automatic && options.outer != candidate.outer &&
        candidate.algorithm == Algorithm::hierarchical)
      continue;
    if (narrow && candidate.algorithm != Algorithm::ring &&
        !(candidate.algorithm == Algorithm::hierarchical && ring_outside))
      continue;
    result.algorithm = candidate.algorithm;
    if (result.outer == Algorithm::automatic) result.outer = candidate.outer;
    if (result.segment_bytes == 0) result.segment_bytes = candidate.segment_bytes;
    break;
  }
  // Chosen by name although the model sees no use in it, such as hierarchical on one host.
  if (result.algorithm == Algorithm::automatic) result.algorithm = Algorithm::ring;
  if (result.outer == Algorithm::automatic) result.outer = Algorithm::ring;
  if (result.segment_bytes == 0) result.segment_bytes = choice.segment_bytes;
  return result;
}

void allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
               const AllreduceOptions& options) {
  const AllreduceOptions concrete = resolved(transport, buffer.bytes(), buffer.dtype, options);
  if (buffer.dtype == DType::u8)
    throw Error(ErrorCode::bug, "bytes have no arithmetic: u8 can be moved, not reduced");
  if (transport.size() == 1) return;
  const Call named = with_name(call, "allreduce");
  if (options.check == Check::agreement)
    check_agreement(transport,
                    {.collective = Collective::allreduce,
                     .dtype = buffer.dtype,
                     .reduction = reduction,
                     .variant = variant_of(concrete),
                     .count = buffer.count},
                    named);
  if (concrete.reproducible) return reproducible_allreduce(transport, buffer, reduction, named);
  run(transport, buffer, reduction, named, concrete);
}

}  // namespace renkei::comm
