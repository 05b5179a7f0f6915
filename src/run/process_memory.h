#pragma once

#include <cstdint>

namespace renkei::run {

// The memory that this process uses, in bytes: pages that several processes share count for each of
// them in part. 0 where the system does not tell.
int64_t process_memory_bytes();

}  // namespace renkei::run
