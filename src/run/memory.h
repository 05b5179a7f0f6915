// Memory for tensors, from pools that are kept.
//
// Torch takes memory for every tensor from malloc, which gives large pieces back to the system at
// once: each activation of each step is then made of fresh pages that the kernel has to clear. Here
// a freed piece waits for the next tensor of its size; after the first step nothing is asked of the
// system any more. Large pieces lie in huge pages.
//
// As all tensors pass through here, their bytes are known exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>

namespace renkei::run {

struct MemoryUse {
  int64_t live = 0;  // bytes of tensors that exist
  int64_t peak = 0;  // the most there ever were, since reset_peak_memory()
  int64_t held = 0;  // bytes taken from the system: of tensors, of rounding, kept for later
};

// From now on Torch's CPU tensors come from the pools. Once, before tensors are made; tensors made
// before stay as they are.
void install_memory_pools();
bool memory_pools_are_installed();

// Where large tensors lie instead: memory that other processes can be let into, for example. They
// are counted and limited as those of the pools are. From any thread.
class LargeMemory {
 public:
  virtual ~LargeMemory() = default;
  virtual void* take(size_t bytes) = 0;  // null: not large, or no room
  virtual void give_back(void* data) = 0;
  virtual bool owns(const void* data) const = 0;
};
// From now on, for the pools; `memory` is never destroyed.
void put_large_tensors(LargeMemory& memory);

MemoryUse memory_use();
void reset_peak_memory();
// From now on a tensor that would make more bytes live than this is refused: allocating it throws a
// MemoryLimit, which Torch may turn into another exception. No limit: 0.
void limit_memory(int64_t bytes);
struct MemoryLimit : std::runtime_error {
  MemoryLimit(int64_t asked, int64_t live)
      : std::runtime_error("the limit of the device's memory is reached"),
        asked(asked),
        live(live) {}
  int64_t asked, live;
};
// The refusal that was the last, since the last call of this function.
std::optional<MemoryLimit> last_refusal();

// While there is one on this thread, tensors made here are the host's: they are not counted, and no
// limit of the device holds for them.
class HostMemory {
 public:
  HostMemory();
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
};

void release_unused_memory();  // gives back to the system what is kept for later tensors

}  // namespace renkei::run
