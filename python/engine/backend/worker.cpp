#include "backend/worker.h"

#include <unistd.h>

#include <utility>

namespace renkei::python {

Worker::~Worker() {
  if (threads_.empty()) return;
  if (::getpid() != process_) {  // a child has no such threads
    for (std::thread& thread : threads_) thread.detach();
    return;
  }
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  while (!threads_.empty()) {  // callbacks may still submit something
    std::vector<std::thread> ended = std::exchange(threads_, {});
    lock.unlock();
    for (std::thread& thread : ended) thread.join();
    lock.lock();
  }
}

void Worker::submit(Turn turn) {
  const std::lock_guard lock(mutex_);
  turns_.push_back(std::move(turn));
  call_next();
}

void Worker::do_now(const Turn& turn) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_ && turns_.empty(); });
    busy_ = true;
  }
  const Rest rest = turn();
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    call_next();
  }
  rest();
}

void Worker::call_next() {
  changed_.notify_all();
  if (busy_ || turns_.empty() || waiting_ > 0) return;
  process_ = ::getpid();
  threads_.emplace_back([this] { run(); });
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++waiting_;
    changed_.wait(lock, [&] { return !busy_ && (!turns_.empty() || ending_); });
    --waiting_;
    if (turns_.empty()) return;
    const Turn turn = std::move(turns_.front());
    turns_.pop_front();
    busy_ = true;
    lock.unlock();
    const Rest rest = turn();
    lock.lock();
    busy_ = false;
    call_next();
    lock.unlock();
    rest();
    lock.lock();
  }
}

}  // namespace renkei::python
