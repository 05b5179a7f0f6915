#pragma once

#include "comm/transport.h"

namespace renkei::comm {

// Copies the root's buffer into every rank's. T: float, double, int64_t, uint8_t, std::byte.
template <typename T>
void broadcast(Transport& transport, std::span<T> buffer, int root, const Call& call = {});

}  // namespace renkei::comm
