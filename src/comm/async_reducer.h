// Reduces buckets on a thread of its own while the caller goes on computing.
//
// All ranks must reduce the buckets in the same order, yet on each rank they get ready when they
// do. No message is spent on agreeing: the order is fixed beforehand, bucket 0 first, and a bucket
// that is ready early waits for those before it. So the caller numbers the buckets in the order in
// which they usually get ready; gradients of the last layer come first.
//
// Between start() and wait() the caller must not use the same communicator.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/buffer/dtype.h"

namespace renkei::comm {

class AsyncReducer {
 public:
  // Called for bucket 0, 1, … of each step, from the reducer's thread, or from wait() without
  // overlap.
  using Reduce = std::function<void(int bucket, int64_t step)>;

  AsyncReducer(int buckets, Reduce reduce, bool overlap);
  ~AsyncReducer();  // ends the thread; does not communicate
  AsyncReducer(const AsyncReducer&) = delete;
  AsyncReducer& operator=(const AsyncReducer&) = delete;

  void start(int64_t step);
  void submit(int bucket);  // its content is complete; at most once per step, from any thread
  void wait();              // until all are reduced; buckets not submitted yet count as complete

 private:
  void run_thread();
  bool next_is_ready() const { return next_ < buckets_ && ready_[static_cast<size_t>(next_)]; }

  const int buckets_;
  const Reduce reduce_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ready_;
  int next_;  // the bucket that is reduced next; buckets_ when all are
  int64_t step_ = -1;
  bool ending_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // not running without overlap
};

}  // namespace renkei::comm
