// From now on, large tensors of this process lie where the other ranks of its host can be let in
// (comm/shared_memory/arena.h), so that any of them is reduced without a copy.
#pragma once

#include "comm/shared_memory/arena.h"

namespace renkei::python {

// Makes it Torch's CPU allocator, or where its pools (run/memory.h) have large tensors, once;
// tensors made before stay where they are. Null, and a sentence on stderr, where the system has no
// such memory: then collectives copy. `rank` is that on the host.
comm::Arena* share_tensors(int rank);

}  // namespace renkei::python
