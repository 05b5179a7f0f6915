#include "data/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace renkei::data {
namespace {

// Indices are handed out in ascending order and what was handed out is finished. So when an index
// fails, all lower ones have been or will be tried, and the lowest failure does not depend on luck.
class Work {
 public:
  Work(int64_t count, const std::function<void(int64_t)>& work, const Progress& progress)
      : count_(count), work_(work), progress_(progress) {}

  void run() noexcept {
    while (!failed_.load()) {
      const int64_t index = next_.fetch_add(1);
      if (index >= count_) return;
      try {
        work_(index);
        report();
      } catch (...) {
        keep(index, std::current_exception());
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void report() {
    const std::lock_guard lock(mutex_);
    ++done_;
    // A hundred calls are enough for any display, and cost nothing.
    if (progress_ && (done_ == count_ || done_ * 100 / count_ != (done_ - 1) * 100 / count_))
      progress_(done_, count_);
  }

  void keep(int64_t index, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_ || index < failed_index_) {
      failure_ = std::move(failure);
      failed_index_ = index;
    }
    failed_.store(true);
  }

  const int64_t count_;
  const std::function<void(int64_t)>& work_;
  const Progress& progress_;
  std::atomic<int64_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  int64_t done_ = 0;
  int64_t failed_index_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& work,
                  const Progress& progress) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Work shared(count, work, progress);
  {
    std::vector<std::jthread> helpers;
    for (int64_t helper = 1; helper < std::min<int64_t>(threads, count); ++helper) {
      try {
        helpers.emplace_back([&shared] { shared.run(); });
      } catch (const std::system_error&) {
        break;  // The system allows no more threads: the ones we have do the work.
      }
    }
    shared.run();
  }
  shared.rethrow();
}

}  // namespace renkei::data
