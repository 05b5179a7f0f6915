#include "backend/point_to_point.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "tensors.h"

namespace renkei::python {

PointToPoint::~PointToPoint() {
  if (thread_.joinable() && ::getpid() != process_) {  // a child has no such thread
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PointToPoint::add(PendingMessage message) {
  message.end_seconds = transport_.clock().seconds() + message.timeout_seconds;
  if (!message.receives)
    message.request = transport_.send(message.peer, bytes_of(message.memory), message.tag);
  else if (message.peer >= 0)
    message.request = transport_.receive(message.peer, bytes_of(message.memory), message.tag);
  {
    const std::lock_guard lock(mutex_);
    // Receives from anyone must not overtake each other.
    if (message.peer >= 0 && advance(message)) return;
    pending_.push_back(std::move(message));
    if (!thread_.joinable()) {
      process_ = ::getpid();
      thread_ = std::thread([this] { run(); });
    }
  }
  changed_.notify_all();
}

bool PointToPoint::advance(PendingMessage& message) {
  try {
    if (!try_advance(message)) return false;
    message.work->complete();
  } catch (...) {
    message.work->complete(std::current_exception());
  }
  return true;
}

bool PointToPoint::try_advance(PendingMessage& message) {
  const bool late = transport_.clock().seconds() > message.end_seconds;
  const comm::Call call{.operation = message.operation, .timeout_seconds = message.timeout_seconds};
  if (message.peer < 0) {
    const int sender = transport_.sender_of_next(message.tag);
    if (sender < 0 && !late) return false;
    if (sender < 0)
      throw comm::Timeout(ErrorCode::communication,
                          fmt::format("{} waited {} s for a message of any rank in {}",
                                      name_of_rank(transport_, transport_.rank()),
                                      message.timeout_seconds, message.operation),
                          "look at the logs of the ranks that should have sent one");
    message.peer = sender;
    message.work->came_from(sender);
    message.request = transport_.receive(sender, bytes_of(message.memory), message.tag);
  }
  if (!transport_.done(message.request)) {
    if (late) throw_timeout(transport_, message.peer, call);
    if (message.receives && transport_.has_ended(message.peer) &&
        !transport_.done(message.request)) {
      comm::Timeout error(
          ErrorCode::communication,
          fmt::format("{} has ended, and {} waits for it in {}",
                      name_of_rank(transport_, message.peer),
                      name_of_rank(transport_, transport_.rank()), message.operation));
      error.rank = transport_.job_rank(message.peer);
      throw error;
    }
    return false;
  }
  transport_.wait(message.request, call);
  if (message.receives && !message.memory.is_same(message.given)) {
    const at::NoGradGuard no_grad;
    message.given.copy_(message.memory);
  }
  return true;
}

void PointToPoint::run() {
  constexpr int kTurns = 200, kLongTurns = 20'000;
  int idle_turns = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !pending_.empty(); });
    if (ending_) break;
    const size_t before = pending_.size();
    pending_.remove_if([&](PendingMessage& message) { return advance(message); });
    idle_turns = pending_.size() < before ? 0 : idle_turns + 1;
    lock.unlock();
    if (idle_turns < kTurns) {
      sched_yield();
    } else {
      const timespec pause{0, idle_turns < kLongTurns ? 30'000 : 200'000};
      nanosleep(&pause, nullptr);
    }
    lock.lock();
  }
  for (PendingMessage& message : pending_)
    message.work->complete(std::make_exception_ptr(
        Error(ErrorCode::communication,
              fmt::format("the process group was destroyed during {}", message.operation))));
  pending_.clear();
}

}  // namespace renkei::python
