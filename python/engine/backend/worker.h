// Does the operations of a group one after the other, in the order in which they were submitted: on
// a thread of its own, or at once in the caller's where nothing is before it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace renkei::python {

class Worker {
 public:
  Worker() = default;
  ~Worker();  // does what was submitted before
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `task` does not throw.
  void submit(std::function<void()> task);
  void do_now(const std::function<void()>& task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false, ending_ = false;
  int process_ = 0;  // whose the thread is
  std::thread thread_;
};

}  // namespace renkei::python
