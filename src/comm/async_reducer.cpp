#include "comm/async_reducer.h"

namespace renkei::comm {

AsyncReducer::AsyncReducer(int buckets, Reduce reduce, bool overlap)
    : buckets_(buckets),
      reduce_(std::move(reduce)),
      ready_(static_cast<size_t>(buckets), false),
      next_(buckets) {
  if (overlap) thread_ = std::thread([this] { run_thread(); });
}

AsyncReducer::~AsyncReducer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AsyncReducer::start(int64_t step) {
  const std::lock_guard lock(mutex_);
  ready_.assign(ready_.size(), false);
  next_ = 0;
  step_ = step;
}

void AsyncReducer::submit(int bucket) {
  {
    const std::lock_guard lock(mutex_);
    ready_[static_cast<size_t>(bucket)] = true;
  }
  changed_.notify_all();
}

void AsyncReducer::wait() {
  std::unique_lock lock(mutex_);
  ready_.assign(ready_.size(), true);
  if (!thread_.joinable()) {
    lock.unlock();
    for (; next_ < buckets_; ++next_) reduce_(next_, step_);
    return;
  }
  changed_.notify_all();
  changed_.wait(lock, [&] { return next_ == buckets_ || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void AsyncReducer::run_thread() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || (next_is_ready() && !failure_); });
    if (ending_) return;
    const int bucket = next_;
    const int64_t step = step_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      reduce_(bucket, step);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    ++next_;
    if (next_ == buckets_ || failure_) changed_.notify_all();
  }
}

}  // namespace renkei::comm
