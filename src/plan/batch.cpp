#include "plan/batch.h"

#include "base/error.h"

namespace renkei::plan {
namespace {

// How a batch that is not a multiple of `parts` could be made one.
std::string nearest_multiples(int64_t batch, int64_t parts) {
  const int64_t below = batch / parts * parts;
  if (below == 0) return fmt::format("use a batch of {}", parts);
  return fmt::format("use a batch of {} or {}", below, below + parts);
}

[[noreturn]] void refuse_contradiction(const BatchSizes& given, int64_t batch) {
  throw Error(ErrorCode::usage,
              fmt::format("micro-batch {} × {} micro-batches × {} ranks make {}, not a batch of {}",
                          given.micro, given.accumulation, given.ranks,
                          given.micro * given.accumulation * given.ranks, batch),
              "leave one of the three out, and it is inferred");
}

}  // namespace

std::string BatchSizes::equation() const {
  if (micro * accumulation * ranks != global)
    return fmt::format("batch {} over {} rank{} × {} micro-batch{}: {} or {} samples each", global,
                       ranks, ranks == 1 ? "" : "s", accumulation, accumulation == 1 ? "" : "es",
                       micro, micro - 1);
  return fmt::format("batch {} = micro-batch {} × {} micro-batch{} × {} rank{}", global, micro,
                     accumulation, accumulation == 1 ? "" : "es", ranks, ranks == 1 ? "" : "s");
}

BatchSizes infer_batch_sizes(const BatchRequest& request, int ranks) {
  BatchRequest known = request;
  if (known.per_device) {
    const int64_t global = *known.per_device * ranks;
    if (known.global && *known.global != global)
      throw Error(ErrorCode::usage,
                  fmt::format("a batch of {} per device on {} ranks makes {}, not {}",
                              *known.per_device, ranks, global, *known.global),
                  "give either --batch or --batch-per-device");
    known.global = global;
  }
  BatchSizes sizes{.ranks = ranks};
  if (!known.global) {
    sizes.micro = known.micro.value_or(32);
    sizes.accumulation = known.accumulation.value_or(1);
    sizes.global = sizes.micro * sizes.accumulation * ranks;
    return sizes;
  }
  sizes.global = *known.global;
  if (known.micro) {
    const int64_t parts = *known.micro * ranks;
    sizes.micro = *known.micro;
    sizes.accumulation = known.accumulation.value_or(sizes.global / parts);
    if (sizes.global % parts != 0 && !known.accumulation)
      throw Error(ErrorCode::usage,
                  fmt::format("a batch of {} is not a multiple of micro-batch {} × {} ranks",
                              sizes.global, sizes.micro, ranks),
                  nearest_multiples(sizes.global, parts));
    if (sizes.micro * sizes.accumulation * ranks != sizes.global)
      refuse_contradiction(sizes, sizes.global);
    return sizes;
  }
  sizes.accumulation = known.accumulation.value_or(1);
  const int64_t parts = sizes.accumulation * ranks;
  if (sizes.global < parts)
    throw Error(ErrorCode::usage,
                fmt::format("a batch of {} has no sample for each of {} ranks × {} micro-batches",
                            sizes.global, ranks, sizes.accumulation),
                nearest_multiples(sizes.global, parts));
  sizes.micro = (sizes.global + parts - 1) / parts;  // of those that have one sample more
  return sizes;
}

}  // namespace renkei::plan
