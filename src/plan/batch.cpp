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

[[noreturn]] void refuse_uneven(int64_t batch, int64_t parts, int ranks, int64_t accumulation) {
  std::string among = fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
  if (accumulation > 1) among += fmt::format(" × {} micro-batches", accumulation);
  std::string hint = nearest_multiples(batch, parts);
  for (int fewer = ranks - 1; accumulation == 1 && fewer >= 1; --fewer)
    if (batch % fewer == 0) {
      hint += fmt::format(", or {} rank{}", fewer, fewer == 1 ? "" : "s");
      break;
    }
  throw Error(ErrorCode::usage,
              fmt::format("a batch of {} can't be split evenly over {}", batch, among), hint);
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
  if (sizes.global % parts != 0) refuse_uneven(sizes.global, parts, ranks, sizes.accumulation);
  sizes.micro = sizes.global / parts;
  return sizes;
}

}  // namespace renkei::plan
