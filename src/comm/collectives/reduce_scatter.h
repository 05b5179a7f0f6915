#pragma once

#include "comm/agreement.h"
#include "comm/buffer/chunk_range.h"
#include "comm/buffer/reduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

// Reduces the buffers of all ranks element by element and leaves on rank r its chunk of the result,
// which is returned: chunk_range(buffer.count, n, r) of `buffer`. The rest of `buffer` is used for
// partial results and means nothing afterwards. The ring of ring.h, by rank: (n-1)/n of the buffer
// in n-1 steps; chunk r is x(r+1) + x(r+2) + … + x(r).
Buffer reduce_scatter(Transport& transport, Buffer buffer, Reduction reduction,
                      const Call& call = {}, Check check = Check::agreement);

}  // namespace renkei::comm
