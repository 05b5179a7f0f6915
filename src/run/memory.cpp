#include "run/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace renkei::run {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPooled = size_t{64} << 10;  // smaller pieces are malloc's business

// Before every piece; the piece starts on the next cache line.
struct alignas(kLine) Header {
  size_t bytes;  // of the whole piece, with the header
  size_t asked;  // by the tensor, of the device's memory
};
static_assert(sizeof(Header) == kLine);

// Sizes are rounded up to eight steps per power of two, so that tensors of nearly the same size
// share pieces and at most an eighth is wasted.
size_t rounded(size_t bytes) {
  if (bytes < kPooled) return (bytes + kLine - 1) / kLine * kLine;
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

// What a piece takes from the system: large ones are whole huge pages.
size_t system_bytes(size_t bytes) {
  return bytes < kHugePage ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

void* from_system(size_t bytes) {
  const bool huge = bytes >= kHugePage;
  void* piece = std::aligned_alloc(huge ? kHugePage : kLine, system_bytes(bytes));
  if (!piece) throw std::bad_alloc();
  if (huge) ::madvise(piece, bytes, MADV_HUGEPAGE);
  return piece;
}

thread_local int host_memories = 0;

class Pools final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t asked) override {
    if (asked == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
    const size_t counted = host_memories > 0 ? 0 : asked;
    if (counted > 0) refuse_above_limit(static_cast<int64_t>(counted));
    if (void* data = take_large(asked, counted))
      return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
    const size_t bytes = rounded(asked + sizeof(Header));
    void* piece = take(bytes);
    const bool fresh = !piece;
    if (fresh) piece = from_system(bytes);
    auto* header = new (piece) Header{bytes, counted};
    {
      const std::lock_guard lock(mutex_);
      if (fresh) use_.held += static_cast<int64_t>(system_bytes(bytes));
      use_.live += static_cast<int64_t>(counted);
      use_.peak = std::max(use_.peak, use_.live);
    }
    void* data = header + 1;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }

  MemoryUse use() const {
    const std::lock_guard lock(mutex_);
    return use_;
  }
  void release_unused() {
    const std::lock_guard lock(mutex_);
    for (const auto& [bytes, pieces] : free_)
      for (void* piece : pieces) {
        use_.held -= static_cast<int64_t>(system_bytes(bytes));
        std::free(piece);
      }
    free_.clear();
  }
  void limit(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
  }
  std::optional<MemoryLimit> take_refusal() {
    const std::lock_guard lock(mutex_);
    return std::exchange(refusal_, {});
  }
  void put_large(LargeMemory& memory) {
    large_ = &memory;
    release_unused();  // what comes next shall lie there
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    use_.peak = use_.live;
  }

 private:
  static void release(void* data);

  void refuse_above_limit(int64_t asked) const {
    const std::lock_guard lock(mutex_);
    if (limit_ == 0 || use_.live + asked <= limit_) return;
    refusal_.emplace(asked, use_.live);
    throw *refusal_;
  }

  void* take(size_t bytes) const {
    if (bytes < kPooled) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = free_.find(bytes);
    if (found == free_.end() || found->second.empty()) return nullptr;
    void* piece = found->second.back();
    found->second.pop_back();
    return piece;
  }

  void* take_large(size_t asked, size_t counted) {
    LargeMemory* const memory = large_;
    void* data = memory ? memory->take(asked) : nullptr;
    if (!data) return nullptr;
    const std::lock_guard lock(mutex_);
    pieces_of_large_[data] = {asked, counted};
    use_.held += static_cast<int64_t>(asked);
    use_.live += static_cast<int64_t>(counted);
    use_.peak = std::max(use_.peak, use_.live);
    return data;
  }

  bool give_back_large(void* data) {
    LargeMemory* const memory = large_;
    if (!memory || !memory->owns(data)) return false;
    {
      const std::lock_guard lock(mutex_);
      const auto found = pieces_of_large_.find(data);
      use_.held -= static_cast<int64_t>(found->second.bytes);
      use_.live -= static_cast<int64_t>(found->second.asked);
      pieces_of_large_.erase(found);
    }
    memory->give_back(data);
    return true;
  }

  void give_back(Header* header) {
    const size_t bytes = header->bytes;
    const std::lock_guard lock(mutex_);
    use_.live -= static_cast<int64_t>(header->asked);
    if (bytes >= kPooled) return free_[bytes].push_back(header);
    use_.held -= static_cast<int64_t>(bytes);
    std::free(header);
  }

  mutable std::mutex mutex_;
  mutable std::map<size_t, std::vector<void*>> free_;
  std::atomic<LargeMemory*> large_ = nullptr;
  std::unordered_map<void*, Header> pieces_of_large_;
  mutable MemoryUse use_;
  int64_t limit_ = 0;
  mutable std::optional<MemoryLimit> refusal_;
};

// Never destroyed: tensors may outlive everything else.
Pools& pools() {
  static auto* pools = new Pools;
  return *pools;
}

void Pools::release(void* data) {
  if (data && !pools().give_back_large(data)) pools().give_back(static_cast<Header*>(data) - 1);
}

}  // namespace

void install_memory_pools() {
  c10::SetCPUAllocator(&pools(), /*priority=*/1);
}

bool memory_pools_are_installed() {
  return c10::GetCPUAllocator() == &pools();
}

void put_large_tensors(LargeMemory& memory) {
  pools().put_large(memory);
}

MemoryUse memory_use() {
  return pools().use();
}

void reset_peak_memory() {
  pools().reset_peak();
}

void limit_memory(int64_t bytes) {
  pools().limit(bytes);
}

std::optional<MemoryLimit> last_refusal() {
  return pools().take_refusal();
}

HostMemory::HostMemory() {
  ++host_memories;
}

HostMemory::~HostMemory() {
  --host_memories;
}

void release_unused_memory() {
  pools().release_unused();
}

}  // namespace renkei::run
