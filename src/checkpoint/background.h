// One piece of work on a thread of its own. A disk may hang, so nobody waits for it longer than a
// deadline, and giving up does not wait at all.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

namespace renkei::checkpoint {

template <typename Result>
class Background {
 public:
  // What `work` uses must outlive it even if this object does not: it owns what it needs.
  template <typename Work>
  explicit Background(Work work) {
    const auto task = std::make_shared<std::packaged_task<Result()>>(std::move(work));
    future_ = task->get_future();
    try {
      thread_ = std::thread([task] { (*task)(); });
    } catch (const std::system_error&) {
      (*task)();  // no thread is to be had: then the caller waits
    }
  }
  ~Background() {
    if (!thread_.joinable()) return;
    if (!future_.valid() || done())  // taken, or there to be taken
      thread_.join();
    else
      thread_.detach();
  }
  Background(Background&&) noexcept = default;
  Background& operator=(Background&&) = delete;

  bool done() const { return wait(0); }
  bool wait(double seconds) const {
    return future_.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  }
  // Once, when it is done; throws what the work has thrown.
  Result take() { return future_.get(); }

 private:
  std::future<Result> future_;
  std::thread thread_;
};

}  // namespace renkei::checkpoint
