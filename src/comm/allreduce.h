#pragma once

#include "comm/reduce.h"
#include "comm/transport.h"

namespace renkei::comm {

// Replaces every rank's buffer by the reduction of all ranks' buffers, element by element. All
// ranks end with the same bits. T: float, double, int64_t.
template <typename T>
void allreduce(Transport& transport, std::span<T> buffer, Reduction reduction,
               const Call& call = {});

}  // namespace renkei::comm
