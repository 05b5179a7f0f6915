#include "comm/free_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "comm/transport/tags.h"

namespace renkei::comm {

int find_free_groups(Communicator& ranks, int count, const Call& call) {
  std::vector<int64_t> taken(channels::kMostGroups);
  for (const int number : ranks.transport().registry().groups())
    taken[static_cast<size_t>(number)] = 1;
  ranks.allreduce(Buffer(std::span(taken)), Reduction::max, call);
  int first = 0, free = 0;
  for (int number = 0; number < channels::kMostGroups && free < count; ++number) {
    if (taken[static_cast<size_t>(number)] == 0) {
      ++free;
    } else {
      first = number + 1;
      free = 0;
    }
  }
  if (free < count)
    throw Error(ErrorCode::usage,
                fmt::format("{} more groups of ranks are needed, and {} of the {} that a job can "
                            "have are in use",
                            count, std::ranges::count(taken, 1), channels::kMostGroups),
                "close() models and destroy process groups that are no longer needed, or plan with "
                "fewer stages on a rank");
  return first;
}

}  // namespace renkei::comm
