#include "comm/transport/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "base/error.h"

#if defined(__has_feature)
#define RENKEI_HAS_FEATURE(name) __has_feature(name)
#else
#define RENKEI_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || RENKEI_HAS_FEATURE(address_sanitizer)
#define RENKEI_ADDRESS_SANITIZER 1
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || RENKEI_HAS_FEATURE(thread_sanitizer)
#define RENKEI_THREAD_SANITIZER 1
#include <sanitizer/tsan_interface.h>
#endif

namespace renkei::comm {
namespace {

constexpr size_t kGuardBytes = 4096;

// Functions of their own, never merged: a jump must not start where its place was saved.
[[noreturn, gnu::noinline]] void jump_to(void** place) {
  __builtin_longjmp(place, 1);
}
[[gnu::noinline]] void switch_to_first_frame(void** here, const ucontext_t& frame) {
  if (__builtin_setjmp(here) == 0) setcontext(&frame);
}
[[gnu::noinline]] void switch_to(void** here, void** there) {
  if (__builtin_setjmp(here) == 0) jump_to(there);
}

}  // namespace

void Fiber::before_switch([[maybe_unused]] Sanitizer& from, [[maybe_unused]] const Sanitizer& to,
                          [[maybe_unused]] bool for_good) {
#ifdef RENKEI_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from.fake_stack, to.bottom, to.bytes);
#endif
#ifdef RENKEI_THREAD_SANITIZER
  __tsan_switch_to_fiber(to.fiber, 0);
#endif
}

void Fiber::after_switch([[maybe_unused]] Sanitizer& here, [[maybe_unused]] Sanitizer& before) {
#ifdef RENKEI_ADDRESS_SANITIZER
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(here.fake_stack, &bottom, &bytes);
  // The first switch learns the bounds of the thread's own stack here.
  before.bottom = bottom;
  before.bytes = bytes;
#endif
}

Fiber::Fiber(size_t stack_bytes, std::function<void()> body)
    : body_(std::move(body)),
      bytes_((stack_bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes + kGuardBytes) {
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::memory, fmt::format("no {} bytes for the stack of a rank", bytes_));
  memory_ = static_cast<std::byte*>(memory);
  mprotect(memory_, kGuardBytes, PROT_NONE);
  stack_inside_.bottom = memory_ + kGuardBytes;
  stack_inside_.bytes = bytes_ - kGuardBytes;
#ifdef RENKEI_THREAD_SANITIZER
  stack_inside_.fiber = __tsan_create_fiber(0);
#endif
  getcontext(&first_frame_);
  first_frame_.uc_stack.ss_sp = memory_ + kGuardBytes;
  first_frame_.uc_stack.ss_size = bytes_ - kGuardBytes;
  first_frame_.uc_link = nullptr;
  // Arguments are integers of 32 bits.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&first_frame_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

Fiber::~Fiber() {
#ifdef RENKEI_THREAD_SANITIZER
  __tsan_destroy_fiber(stack_inside_.fiber);
#endif
  munmap(memory_, bytes_);
}

void Fiber::enter(unsigned high, unsigned low) {
  auto& self = *reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | uintptr_t{low});
  self.after_switch(self.stack_inside_, self.stack_outside_);
  self.body_();
  self.ended_ = true;
  self.before_switch(self.stack_inside_, self.stack_outside_, /*for_good=*/true);
  jump_to(self.outside_);
}

void Fiber::resume() {
  exchange_exceptions(exceptions_outside_, exceptions_inside_);
#ifdef RENKEI_THREAD_SANITIZER
  stack_outside_.fiber = __tsan_get_current_fiber();
#endif
  before_switch(stack_outside_, stack_inside_, /*for_good=*/false);
  if (std::exchange(begun_, true))
    switch_to(outside_, inside_);
  else
    switch_to_first_frame(outside_, first_frame_);
  after_switch(stack_outside_, stack_inside_);
  exchange_exceptions(exceptions_inside_, exceptions_outside_);
}

void Fiber::suspend() {
  before_switch(stack_inside_, stack_outside_, /*for_good=*/false);
  switch_to(inside_, outside_);
  after_switch(stack_inside_, stack_outside_);
}

void Fiber::exchange_exceptions(Exceptions& mine, const Exceptions& theirs) {
  // The beginning of the run-time's __cxa_eh_globals, by the ABI that GCC and Clang have in common.
  auto& current = *reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  mine = current;
  current = theirs;
}

}  // namespace renkei::comm
