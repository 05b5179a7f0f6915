#pragma once

#include <vector>

#include "comm/transport/transport.h"

namespace renkei::comm {

// Before memory is shared: waits until all of these ranks are here with the same number of bytes.
// Libraries wait without a deadline for a rank that never comes, so nobody calls them before all
// have come. Each rank tells every other one, so that all name the rank that is missing, and not
// one that waits itself.
void meet_to_share(Transport& transport, const std::vector<int>& ranks, size_t bytes,
                   const Call& call);

}  // namespace renkei::comm
