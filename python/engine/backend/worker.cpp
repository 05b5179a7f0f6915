#include "backend/worker.h"

#include <unistd.h>

namespace renkei::python {

Worker::~Worker() {
  if (!thread_.joinable()) return;
  if (::getpid() != process_) {  // a child has no such thread
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (!thread_.joinable()) {
      process_ = ::getpid();
      thread_ = std::thread([this] { run(); });
    }
  }
  changed_.notify_all();
}

void Worker::do_now(const std::function<void()>& task) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_ && tasks_.empty(); });
    busy_ = true;
  }
  task();
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }
  changed_.notify_all();
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !busy_ && (!tasks_.empty() || ending_); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    task();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace renkei::python
