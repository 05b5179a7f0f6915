#include "compute/blocked.h"

namespace renkei::compute {

int64_t preferred_block() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? 16 : 8;
}

int64_t block_for(int64_t channels, int64_t preferred) {
  if (preferred == 16 && channels % 16 == 0) return 16;
  return channels % 8 == 0 ? 8 : 1;
}

}  // namespace renkei::compute
