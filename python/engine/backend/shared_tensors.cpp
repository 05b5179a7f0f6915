#include "backend/shared_tensors.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "run/memory.h"

namespace renkei::python {
namespace {

// Smaller tensors are copied when they are exchanged, and cost less so than whole pages would.
constexpr size_t kLargeBytes = 32 << 10;
// Lines by which the buffers of neighbouring ranks are apart; a prime, so that no ranks meet soon.
constexpr size_t kSkewLines = 17, kLine = 64, kLinesOfPage = 61;

class SharedTensors final : public c10::Allocator, public run::LargeMemory {
 public:
  explicit SharedTensors(const comm::ArenaOptions& options) : arena_(options) {}
  comm::Arena& arena() { return arena_; }

  void* take(size_t bytes) override {
    return bytes < kLargeBytes ? nullptr : arena_.allocate(bytes);
  }
  void give_back(void* data) override { arena_.release(data); }
  bool owns(const void* data) const override { return arena_.owns(data); }

  c10::DataPtr allocate(size_t bytes) override {
    void* data = take(bytes);
    if (!data) data = c10::alloc_cpu(bytes);
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }

 private:
  static void release(void* data);
  comm::Arena arena_;
};

SharedTensors* installed = nullptr;  // never destroyed: tensors may outlive everything else

void SharedTensors::release(void* data) {
  if (!data) return;
  c10::profiledCPUMemoryReporter().Delete(data);
  if (installed->arena_.owns(data))
    installed->arena_.release(data);
  else
    c10::free_cpu(data);
}

// As much as the host has, unless RENKEI_SHARED_TENSORS says otherwise ("8GiB"; "0": none).
size_t arena_bytes() {
  if (const char* text = std::getenv("RENKEI_SHARED_TENSORS"))
    return static_cast<size_t>(parse_size(text));
  const auto all =
      static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return std::min(all, size_t{512} << 30);
}

}  // namespace

comm::Arena* share_tensors(int rank) {
  if (installed) return &installed->arena();
  static bool tried = false;
  if (std::exchange(tried, true)) return nullptr;
  try {
    const size_t bytes = arena_bytes();
    if (bytes == 0) return nullptr;
    const size_t skew = static_cast<size_t>(rank) * kSkewLines % kLinesOfPage * kLine;
    installed = new SharedTensors({.bytes = bytes, .skew_bytes = skew});
    // Models in stages and compiled graphs have tensors in pools, before or after this: then only
    // the large ones lie here.
    run::put_large_tensors(*installed);
    if (!run::memory_pools_are_installed()) c10::SetCPUAllocator(installed, /*priority=*/1);
  } catch (const Error& error) {
    fmt::print(stderr, "renkei: tensors of rank {} are not shared and will be copied: {}\n", rank,
               error.message);
    return nullptr;
  }
  return &installed->arena();
}

}  // namespace renkei::python
