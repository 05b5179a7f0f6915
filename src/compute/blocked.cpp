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

bool has_bf16_instructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace renkei::compute
