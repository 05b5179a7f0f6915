// A function with a stack of its own, which can stop in the middle and go on later, all on one
// thread. Collectives block in wait(), so each of thousands of ranks in a process needs a stack; as
// threads, they would spend their time on waking each other, in an order that nobody knows. The one
// who resumes fibers decides which runs when: the same order in every run.
//
// A fiber is left and entered without a system call: the compiler's own setjmp and longjmp, which
// save three words. ucontext only makes the first frame; its switch would take microseconds.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace renkei::comm {

class Fiber {
 public:
  // Memory for the stack is taken as it is used. Below it, a page that nobody may touch.
  Fiber(size_t stack_bytes, std::function<void()> body);
  // The body must have returned, or not have begun: what lies on its stack is not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();   // runs the body until it suspends or returns; an exception in it is a bug
  void suspend();  // for the body only: back to where it was resumed
  bool ended() const { return ended_; }

 private:
  using Place = void* [5];  // of __builtin_setjmp

  // What the C++ run-time knows of a thread's exceptions, which each stack has its own of: a fiber
  // may wait while it handles one.
  struct Exceptions {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };

  // What a sanitizer must know of a stack before and after a switch.
  struct Sanitizer {
    void* fake_stack = nullptr;
    const void* bottom = nullptr;
    size_t bytes = 0;
    void* fiber = nullptr;
  };

  static void enter(unsigned high, unsigned low);
  static void exchange_exceptions(Exceptions& mine, const Exceptions& theirs);
  // Inline always: the thread sanitizer counts calls by stack, and these begin on one and end on
  // the other.
  [[gnu::always_inline]] static inline void before_switch(Sanitizer& from, const Sanitizer& to,
                                                          bool for_good);
  [[gnu::always_inline]] static inline void after_switch(Sanitizer& here, Sanitizer& before);

  std::function<void()> body_;
  size_t bytes_;  // of the stack and its guard
  std::byte* memory_;
  ucontext_t first_frame_;
  Place inside_, outside_;
  Exceptions exceptions_inside_, exceptions_outside_;
  Sanitizer stack_inside_, stack_outside_;
  bool begun_ = false, ended_ = false;
};

}  // namespace renkei::comm
