#pragma once

#include <cstdint>

namespace renkei::run {

// The memory that this process uses, in bytes: pages that several processes share count for each of
// them in part. 0 where the system does not tell.
int64_t process_memory_bytes();
// The part of it that is files: libraries, as far as they have been used.
int64_t library_bytes();

}  // namespace renkei::run
