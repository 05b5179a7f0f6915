#include "cluster/limits.h"

#include <sys/resource.h>

#include "base/error.h"
#include "base/units.h"

namespace renkei::cluster {
namespace {

int64_t soft_limit(int resource) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

Limits current_limits() {
  return {soft_limit(RLIMIT_NOFILE), soft_limit(RLIMIT_STACK)};
}

Limits needed_limits(int ranks) {
  return {.descriptors = 64 + 2 * int64_t{ranks},
          .stack_bytes = (int64_t{512} << 10) + int64_t{ranks} * 2048};
}

void check_limits(const Limits& have, int ranks) {
  const Limits need = needed_limits(ranks);
  if (have.descriptors >= 0 && have.descriptors < need.descriptors)
    throw Error(ErrorCode::usage,
                fmt::format("{} ranks may need {} open files each, but the limit is {}", ranks,
                            need.descriptors, have.descriptors),
                fmt::format("raise it before starting: ulimit -n {}", need.descriptors));
  if (have.stack_bytes >= 0 && have.stack_bytes < need.stack_bytes)
    throw Error(
        ErrorCode::usage,
        fmt::format("{} ranks may need a stack of {} each, but the limit is {}", ranks,
                    format_size(need.stack_bytes), format_size(have.stack_bytes)),
        fmt::format("raise it before starting: ulimit -s {}", (need.stack_bytes + 1023) / 1024));
}

}  // namespace renkei::cluster
