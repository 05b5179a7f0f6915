#include "cluster/cores.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "comm/collectives/all_gather.h"

namespace renkei::cluster {

int threads_per_rank(comm::Transport& transport) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);

  std::vector<cpu_set_t> all(static_cast<size_t>(transport.size()));
  comm::all_gather(transport, std::as_bytes(std::span(&mine, 1)),
                   std::as_writable_bytes(std::span(all)), {.operation = "exchange of core masks"});

  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int local_ranks = 0;
  for (int rank = 0; rank < transport.size(); ++rank)
    if (transport.host(rank) == transport.host(transport.rank())) {
      CPU_OR(&allowed, &allowed, &all[static_cast<size_t>(rank)]);
      ++local_ranks;
    }
  return std::max(1, CPU_COUNT(&allowed) / local_ranks);
}

}  // namespace renkei::cluster
