// Numbers of groups (transport/tags.h) for whoever makes views of a transport: another model of the
// program may have some already.
#pragma once

#include "comm/communicator.h"

namespace renkei::comm {

// The first of `count` neighbouring numbers that no group has on any rank; the same on all. All
// ranks together. A usage Error when there are not so many.
int find_free_groups(Communicator& ranks, int count, const Call& call);

}  // namespace renkei::comm
