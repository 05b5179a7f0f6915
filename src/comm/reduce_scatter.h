#pragma once

#include "comm/chunk_range.h"
#include "comm/reduce.h"
#include "comm/transport.h"

namespace renkei::comm {

// Reduces the buffers of all ranks element by element and leaves on rank r its chunk of the result,
// which is returned: chunk_range(buffer.size(), n, r) of `buffer`. The rest of `buffer` is used for
// partial results and means nothing afterwards. T: float, double, int64_t.
template <typename T>
std::span<T> reduce_scatter(Transport& transport, std::span<T> buffer, Reduction reduction,
                            const Call& call = {});

}  // namespace renkei::comm
