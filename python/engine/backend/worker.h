// Does the operations of a group one after the other, in the order in which they were submitted: on
// a thread of its own, or at once in the caller's where nothing is before it.
//
// What follows from an operation, such as callbacks of its future, comes after its turn, and may
// wait for later operations. So another thread takes the next turn meanwhile: there are as many
// threads as are busy with what follows, and one more.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace renkei::python {

class Worker {
 public:
  using Rest = std::function<void()>;  // what follows from an operation
  using Turn = std::function<Rest()>;  // the operation

  Worker() = default;
  ~Worker();  // does what was submitted before
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Neither a turn nor its rest throws.
  void submit(Turn turn);
  void do_now(const Turn& turn);

 private:
  void run();
  void call_next();  // with the lock

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Turn> turns_;
  bool busy_ = false, ending_ = false;
  int waiting_ = 0;  // threads without anything to do
  int process_ = 0;  // whose the threads are
  std::vector<std::thread> threads_;
};

}  // namespace renkei::python
