#pragma once

#include "comm/transport/transport.h"

namespace renkei::cluster {

// Threads that each rank may use: the cores that the ranks of this host may run on, together,
// divided by the number of these ranks; at least 1. Right whether the launcher has bound the ranks
// to cores of their own or left them all of the host.
int threads_per_rank(comm::Transport& transport);

}  // namespace renkei::cluster
