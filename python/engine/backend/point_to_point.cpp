#include "backend/point_to_point.h"

#include <sched.h>
#include <time.h>

#include <vector>

#include "base/error.h"
#include "tensors.h"

namespace renkei::python {

PointToPoint::~PointToPoint() {
  ending_ = true;  // without the lock, which a child of fork() may find taken
  worker_.reset();
}

void PointToPoint::add(PendingMessage message) {
  message.end_seconds = transport_.clock().seconds() + message.timeout_seconds;
  if (!message.receives)
    message.request = transport_.send(message.peer, bytes_of(message.memory), message.tag);
  else if (message.peer >= 0)
    message.request = transport_.receive(message.peer, bytes_of(message.memory), message.tag);
  std::optional<Done> done;
  {
    const std::lock_guard lock(mutex_);
    // Receives from anyone must not overtake each other.
    if (message.peer >= 0) done = advance(message);
    if (!done) {
      pending_.push_back(std::move(message));
      if (!std::exchange(looking_, true)) worker_->submit([this] { return look(); });
    }
  }
  if (done) done->work->complete(done->failure);
}

std::optional<PointToPoint::Done> PointToPoint::advance(PendingMessage& message) {
  try {
    if (!try_advance(message)) return {};
    return Done{message.work, nullptr};
  } catch (...) {
    return Done{message.work, std::current_exception()};
  }
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

Worker::Rest PointToPoint::look() {
  constexpr int kTurns = 200, kLongTurns = 20'000;
  std::vector<Done> done;
  for (int idle_turns = 0; done.empty(); ++idle_turns) {
    if (idle_turns > 0 && idle_turns < kTurns) {
      sched_yield();
    } else if (idle_turns > 0) {
      const timespec pause{0, idle_turns < kLongTurns ? 30'000 : 200'000};
      nanosleep(&pause, nullptr);
    }
    const std::lock_guard lock(mutex_);
    pending_.remove_if([&](PendingMessage& message) {
      std::optional<Done> one =
          ending_ ? Done{message.work, std::make_exception_ptr(Error(
                                           ErrorCode::communication,
                                           fmt::format("the process group was destroyed during {}",
                                                       message.operation)))}
                  : advance(message);
      if (one) done.push_back(std::move(*one));
      return one.has_value();
    });
    looking_ = !pending_.empty();
    if (looking_ && !done.empty()) worker_->submit([this] { return look(); });
    if (!looking_) break;
  }
  return [done = std::move(done)] {
    for (const Done& one : done) one.work->complete(one.failure);
  };
}

}  // namespace renkei::python
