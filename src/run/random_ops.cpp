#include "run/random_ops.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "base/philox.h"

namespace renkei::run {

uint64_t seed_of(const RandomKey& key, int operation) {
  Random random(key.seed, RandomUse::dropout, static_cast<uint32_t>(key.micro_batch),
                static_cast<uint64_t>(key.step) << 20 | static_cast<uint64_t>(operation));
  const uint64_t high = random();
  return high << 32 | random();
}

void draw(const c10::OperatorHandle& operation, Stack& stack, int generator_at, uint64_t seed) {
  if (generator_at >= 0) {
    stack[static_cast<size_t>(generator_at)] = at::make_generator<at::CPUGeneratorImpl>(seed);
    return operation.callBoxed(stack);
  }
  static std::mutex drawing;
  const std::lock_guard turn(drawing);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(seed);
  }
  operation.callBoxed(stack);
}

}  // namespace renkei::run
