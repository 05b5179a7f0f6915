// Parts of any sizes between any ranks, pairwise: in step s a rank sends to r + s and receives from
// r - s, so that no rank receives from two at once. The sizes go ahead, 8 bytes each: what does not
// agree is an Error and not a broken message.
#pragma once

#include "comm/agreement.h"
#include "comm/group_collectives.h"

namespace renkei::comm {

void exchange_parts(Transport& transport, const Parts& parts, uint64_t count, const Call& call);

}  // namespace renkei::comm
